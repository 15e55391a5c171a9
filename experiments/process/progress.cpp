#include "experiments/process/progress.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>

#include "experiments/process/short_number.h"
#include "experiments/process/terminal.h"

namespace aimle::experiments {
namespace {

constexpr size_t kLongestBar = 28, kShortestBar = 8;
constexpr auto kUntilAnnounced = std::chrono::seconds(3);
std::atomic<bool> quiet_now = false;

std::string bar_of(double share, size_t width) {
  const auto full = static_cast<size_t>(std::lround(share * static_cast<double>(width)));
  std::string bar;
  for (size_t i = 0; i < width; ++i) bar += i < full ? "█" : "░";
  return bar;
}

std::string percent(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%3.0f %%", 100.0 * share);
  return text;
}

}  // namespace

void set_quiet(bool quiet) { quiet_now = quiet; }
bool is_quiet() { return quiet_now; }

void say(std::string_view line) {
  if (!is_quiet()) warn(line);
}

void warn(std::string_view line) {
  const char* start = is_live_terminal(STDERR_FILENO) ? "\r\033[K" : "";  // overwrites a bar
  std::fprintf(stderr, "%s%.*s\n", start, static_cast<int>(line.size()), line.data());
}

void show_phase(std::string_view text) {
  if (is_quiet() || !is_live_terminal(STDERR_FILENO)) return;
  const std::string line = cut_to(text, terminal_columns(STDERR_FILENO) - 1);
  std::fprintf(stderr, "\r%s\033[K", line.c_str());
  std::fflush(stderr);
}

std::string spell_seconds(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::max(0.0, seconds)));
  if (whole < 60) return std::to_string(whole) + " s";
  if (whole < 3600) return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
  return std::to_string(whole / 3600) + " h " + std::to_string(whole / 60 % 60) + " min";
}

std::string spell_roughly(double seconds) {
  if (seconds < 57.5) return std::to_string(5 * std::llround(seconds / 5)) + " s";
  if (seconds < 3570) return std::to_string(std::llround(seconds / 60)) + " min";
  return short_number(std::round(seconds / 360) / 10) + " h";
}

std::optional<double> TimeLeft::seconds(int64_t done, Clock::time_point now) {
  if (done >= total_) return 0.0;
  if (!first_) {
    first_ = now;
    first_done_ = done;
  }
  if (done == first_done_) return std::nullopt;
  const double elapsed = std::chrono::duration<double>(now - *first_).count();
  return elapsed * static_cast<double>(total_ - done) / static_cast<double>(done - first_done_);
}

std::string fit_progress_line(const ProgressLine& line, size_t columns) {
  const std::string left = line.left.empty() ? "" : "  " + std::string(line.left);
  std::string title(line.title);
  title.append(columns_of(title) < 18 ? 18 - columns_of(title) : 0, ' ');
  const std::string after = " " + percent(line.share) + left;
  const std::string note = line.note.empty() ? "" : "  " + std::string(line.note);

  const size_t fixed = columns_of(title) + 1 + columns_of(after);
  const size_t wanted = fixed + columns_of(note);
  if (fixed + kShortestBar > columns) {
    return cut_to(std::string(line.title) + after + note, columns);
  }
  const size_t bar = std::clamp(columns > wanted ? columns - wanted : 0, kShortestBar, kLongestBar);
  return cut_to(title + " " + bar_of(line.share, bar) + after + note, columns);
}

Progress::Progress(std::string title, int64_t total, Announce announce)
    : title_(std::move(title)),
      total_(std::max<int64_t>(1, total)),
      live_(is_live_terminal(STDERR_FILENO)),
      time_left_(total_),
      announce_(std::move(announce)),
      shown_(Clock::now()) {}

Progress::~Progress() {
  if (live_ && shown_any_) std::fputc('\n', stderr);
}

void Progress::step(std::string_view note, int64_t amount) {
  const std::scoped_lock lock(mutex_);
  done_ += amount;
  const auto now = Clock::now();
  const std::optional<double> seconds_left = time_left_.seconds(done_, now);
  announce_once(seconds_left, now);
  if (is_quiet()) return;
  const auto pause = live_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(5000);
  if (now - shown_ < pause && done_ != total_) return;
  shown_ = now;
  show(note, seconds_left);
}

void Progress::announce_once(std::optional<double> seconds_left, Clock::time_point now) {
  if (!first_step_) first_step_ = now;
  if (!announce_ || !seconds_left || now - *first_step_ < kUntilAnnounced) return;
  announce_(*seconds_left + std::chrono::duration<double>(now - *first_step_).count());
  announce_ = {};
}

void Progress::show(std::string_view note, std::optional<double> seconds_left) {
  shown_any_ = true;
  const std::string left = seconds_left ? spell_seconds(*seconds_left) + " left" : "";
  if (!live_) {
    std::string line = title_ + ": " + std::to_string(done_) + "/" + std::to_string(total_);
    if (!left.empty()) line += ", " + left;
    if (!note.empty()) line.append(", ").append(note);
    std::fprintf(stderr, "%s\n", line.c_str());
    return;
  }
  const double share = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
  // The last column stays free: some terminals start a new line after it.
  const std::string line =
      fit_progress_line({.title = title_, .share = share, .left = left, .note = note},
                        std::max<size_t>(2, terminal_columns(STDERR_FILENO)) - 1);
  std::fprintf(stderr, "\r%s\033[K", line.c_str());
  std::fflush(stderr);
}

}  // namespace aimle::experiments
