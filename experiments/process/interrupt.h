// Ctrl-C as a flag: the work looks at it at safe points and ends in order.
//
//   InterruptHandler handler;                       // for as long as the work lasts
//   for (...) {
//     ...;
//     if (interrupt_signal() != 0) break;           // save what there is
//   }
//   if (int signal = interrupt_signal()) throw Stopped(signal, "partial results:
//   out/results.jsonl");
//
// Work that reaches no safe point within kSecondsToStop is ended by the handler, with one line on
// standard error and exit code 128 + signal. Files written with write_atomically stay whole even
// then, and the process is not ended inside a KeepAlive.
//
// A second signal while the first is pending ends the process at once, as if nothing had been
// installed.
#pragma once

#include <string>

#include "experiments/process/failure.h"

namespace aimle::experiments {

constexpr double kSecondsToStop = 1.2;

/// The signal (SIGINT or SIGTERM) that asked the work to end, 0 if none did. Safe on any thread.
int interrupt_signal();

/// A task that was given up because of a signal; its caller knows what is saved.
struct Interrupted : Stopped {
  explicit Interrupted(int signal) : Stopped(signal, "stopped") {}
};

/// Throws Interrupted after a signal: for loops whose partial result is worth nothing.
void stop_if_interrupted();

/// Installs the handler and clears the flag; puts back what was there before. Inside another one it
/// does nothing.
class InterruptHandler {
 public:
  InterruptHandler();
  ~InterruptHandler();
  InterruptHandler(const InterruptHandler&) = delete;
  InterruptHandler& operator=(const InterruptHandler&) = delete;

  bool is_outermost() const { return is_outermost_; }
  /// What is said if the work reaches no safe point in time; "stopped" without it. Inside another
  /// handler, whose owner knows better, it does nothing.
  void set_late_message(const std::string& message) const;

 private:
  bool is_outermost_;
};

/// Loading and the like: nothing is lost if the process ends, so a signal ends it at once, with
/// this message. Inside another handler it does nothing.
class StopsAtOnce {
 public:
  StopsAtOnce(const InterruptHandler& handler, const std::string& message);
  ~StopsAtOnce();
  StopsAtOnce(const StopsAtOnce&) = delete;
  StopsAtOnce& operator=(const StopsAtOnce&) = delete;
};

/// While one lives the handler does not end the process: results are being saved.
class KeepAlive {
 public:
  KeepAlive();
  ~KeepAlive();
  KeepAlive(const KeepAlive&) = delete;
  KeepAlive& operator=(const KeepAlive&) = delete;
};

}  // namespace aimle::experiments
