// Progress of anything longer than two seconds, on standard error: on a terminal a bar that fits
// its current width, otherwise a plain line every five seconds and at the end.
//
//   Progress progress("gradient study", rows.size());
//   for (...) { ...; progress.step("aimle, n = 50"); }
//
// Steps may come from several threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace aimle::experiments {

/// For the whole program: `--quiet` shows neither progress nor informational messages.
void set_quiet(bool quiet);
bool is_quiet();

/// Prints a line to standard error, unless quiet.
void say(std::string_view line);

/// The same even if quiet: for something requested that did not happen.
void warn(std::string_view line);

/// On a terminal: shows the current activity before there is anything to count. The next line or
/// bar overwrites it.
void show_phase(std::string_view text);

/// Estimates the remaining time from the steps after the first report: what came before it
/// (loading, the first evaluation, a slow first step) is not representative.
class TimeLeft {
 public:
  using Clock = std::chrono::steady_clock;
  explicit TimeLeft(int64_t total) : total_(total) {}

  /// `done` steps at this time; returns nothing before a second report.
  std::optional<double> seconds(int64_t done, Clock::time_point now);

 private:
  int64_t total_;
  int64_t first_done_ = 0;
  std::optional<Clock::time_point> first_;
};

/// The contents of a progress line.
struct ProgressLine {
  std::string_view title;
  double share = 0;       // done, in [0, 1]
  std::string_view left;  // "5 s left"; empty: not known
  std::string_view note;
};

/// One line of at most `columns` columns: first the bar is shortened, then the note is cut, then
/// the bar is left out.
std::string fit_progress_line(const ProgressLine& line, size_t columns);

class Progress {
 public:
  /// `announce`, if given, is called once, with the seconds that the work is expected to take, when
  /// its first seconds have shown its speed.
  using Announce = std::function<void(double seconds)>;
  Progress(std::string title, int64_t total, Announce announce = {});
  /// Ends the bar's line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `amount` more units of work are done; `note` is shown next to the remaining time.
  void step(std::string_view note = {}, int64_t amount = 1);

 private:
  using Clock = std::chrono::steady_clock;
  void show(std::string_view note, std::optional<double> seconds_left);
  void announce_once(std::optional<double> seconds_left, Clock::time_point now);

  std::string title_;
  int64_t total_;
  int64_t done_ = 0;
  bool live_;
  bool shown_any_ = false;
  TimeLeft time_left_;
  Announce announce_;  // empty once it was called
  std::optional<Clock::time_point> first_step_;
  Clock::time_point shown_;
  std::mutex mutex_;
};

/// 75 -> "1 min 15 s"
std::string spell_seconds(double seconds);

/// The same for an estimate, without digits that it cannot have: 75 -> "1 min", 5400 -> "1.5 h"
std::string spell_roughly(double seconds);

}  // namespace aimle::experiments
