#include "experiments/process/interrupt.h"

#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <deque>

#include "experiments/process/folder_lock.h"
#include "experiments/process/terminal.h"

namespace aimle::experiments {
namespace {

constexpr std::array<int, 2> kSignals = {SIGINT, SIGTERM};
constexpr int kDeadline = SIGALRM;

// Everything that the signal handlers read is lock-free, because a handler may not wait for a lock.
std::atomic<int> seen = 0;
std::atomic<int> depth = 0;
std::atomic<int> kept_alive = 0;
std::atomic<bool> at_once = false;
std::atomic<const char*> last_words = nullptr;
static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::atomic<const char*>::is_always_lock_free);

timer_t deadline;
std::array<struct sigaction, kSignals.size()> before;

/// All texts that last_words has pointed to: a handler may be reading any of them.
const char* lasting(const std::string& message) {
  static std::deque<std::string> texts;
  const char* clear_line = is_live_terminal(STDERR_FILENO) ? "\r\033[K" : "";
  return texts.emplace_back(clear_line + ("aimle: " + message) + "\n").c_str();
}

[[noreturn]] void end_process() {
  const char* text = last_words.load();
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
  remove_lock_files();
  ::_exit(128 + seen.load());
}

void set_deadline(double seconds) {
  const auto whole = static_cast<time_t>(seconds);
  struct itimerspec when = {};
  when.it_value.tv_sec = whole;
  when.it_value.tv_nsec = static_cast<long>((seconds - static_cast<double>(whole)) * 1e9);
  timer_settime(deadline, 0, &when, nullptr);  // async-signal-safe
}

extern "C" void note_signal(int signal) {
  seen.store(signal);
  if (at_once.load() && kept_alive.load() == 0) end_process();
  set_deadline(kSecondsToStop);
}

extern "C" void note_deadline(int) {
  if (depth.load() == 0) return;  // it expired while the handler was being removed
  if (kept_alive.load() == 0) end_process();
  set_deadline(0.02);
}

}  // namespace

int interrupt_signal() { return seen.load(); }

void stop_if_interrupted() {
  if (const int signal = interrupt_signal()) throw Interrupted(signal);
}

InterruptHandler::InterruptHandler() : is_outermost_(depth++ == 0) {
  if (!is_outermost_) return;
  set_late_message("stopped");
  struct sigaction late = {};
  late.sa_handler = note_deadline;
  late.sa_flags = SA_RESTART;
  sigemptyset(&late.sa_mask);
  sigaction(kDeadline, &late, nullptr);  // never removed: see note_deadline
  struct sigevent event = {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = kDeadline;
  timer_create(CLOCK_MONOTONIC, &event, &deadline);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction action = {};
    action.sa_handler = note_signal;
    sigemptyset(&action.sa_mask);
    // SA_RESETHAND: the second signal of a kind gets the default action.
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    sigaction(kSignals[i], &action, &before[i]);
  }
}

InterruptHandler::~InterruptHandler() {
  --depth;
  if (!is_outermost_) return;
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before[i], nullptr);
  timer_delete(deadline);
  seen.store(0);
}

void InterruptHandler::set_late_message(const std::string& message) const {
  if (is_outermost_) last_words = lasting(message);
}

StopsAtOnce::StopsAtOnce(const InterruptHandler& handler, const std::string& message) {
  stop_if_interrupted();
  handler.set_late_message(message);
  at_once = handler.is_outermost();
}

StopsAtOnce::~StopsAtOnce() { at_once = false; }

KeepAlive::KeepAlive() { ++kept_alive; }
KeepAlive::~KeepAlive() { --kept_alive; }

}  // namespace aimle::experiments
