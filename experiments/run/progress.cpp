#include "experiments/run/progress.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>

namespace aimle::experiments {
namespace {

constexpr int kWidth = 28;
std::atomic<bool> quiet_now = false;

}  // namespace

void set_quiet(bool quiet) { quiet_now = quiet; }
bool is_quiet() { return quiet_now; }

void say(std::string_view line) {
  if (!is_quiet()) warn(line);
}

void warn(std::string_view line) {
  if (::isatty(STDERR_FILENO) == 1) std::fputs("\r\033[K", stderr);  // over a bar
  std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
}

std::string spell_seconds(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::max(0.0, seconds)));
  if (whole < 60) return std::to_string(whole) + " s";
  if (whole < 3600) return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
  return std::to_string(whole / 3600) + " h " + std::to_string(whole / 60 % 60) + " min";
}

Progress::Progress(std::string title, int64_t total)
    : title_(std::move(title)),
      total_(std::max<int64_t>(1, total)),
      live_(::isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      shown_(start_) {}

Progress::~Progress() {
  if (live_ && shown_any_) std::fputc('\n', stderr);
}

void Progress::step(std::string_view note, int64_t amount) {
  const std::scoped_lock lock(mutex_);
  done_ += amount;
  if (is_quiet()) return;
  const auto now = Clock::now();
  const auto pause = live_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(5000);
  if (now - shown_ < pause && done_ != total_) return;
  shown_ = now;
  show(note, std::chrono::duration<double>(now - start_).count());
}

void Progress::show(std::string_view note, double elapsed) {
  shown_any_ = true;
  const double share = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
  const std::string left = spell_seconds(elapsed / share - elapsed);
  const auto note_size = static_cast<int>(note.size());
  if (!live_) {
    std::fprintf(stderr, "%s: %lld/%lld, %s left%s%.*s\n", title_.c_str(),
                 static_cast<long long>(done_), static_cast<long long>(total_), left.c_str(),
                 note.empty() ? "" : ", ", note_size, note.data());
    return;
  }
  std::string bar;
  for (int i = 0; i < kWidth; ++i) bar += i < std::lround(share * kWidth) ? "█" : "░";
  std::fprintf(stderr, "\r%-18s %s %3.0f %%  %s left  %.*s\033[K", title_.c_str(), bar.c_str(),
               100.0 * share, left.c_str(), note_size, note.data());
  std::fflush(stderr);
}

}  // namespace aimle::experiments
