// Progress of anything longer than two seconds, on standard error: a bar on a terminal, elsewhere a
// plain line every five seconds and at the end.
//
//   Progress progress("gradient study", rows.size());
//   for (...) { ...; progress.step("aimle, n = 50"); }
//
// Steps may come from several threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace aimle::experiments {

/// For the whole program: `--quiet` shows nothing.
void set_quiet(bool quiet);
bool is_quiet();

/// A line for the reader on standard error, unless quiet.
void say(std::string_view line);

/// The same even if quiet: for what did not happen although it was asked for.
void warn(std::string_view line);

class Progress {
 public:
  Progress(std::string title, int64_t total);
  /// Ends the bar's line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `amount` more units of work are done; `note` is shown beside the time left.
  void step(std::string_view note = {}, int64_t amount = 1);

 private:
  using Clock = std::chrono::steady_clock;
  void show(std::string_view note, double elapsed);

  std::string title_;
  int64_t total_;
  int64_t done_ = 0;
  bool live_;
  bool shown_any_ = false;
  Clock::time_point start_;
  Clock::time_point shown_;
  std::mutex mutex_;
};

/// 75 -> "1 min 15 s"
std::string spell_seconds(double seconds);

}  // namespace aimle::experiments
