// Ctrl-C as a flag: the work checks it at safe points and ends in order.
//
//   InterruptHandler handler;                       // for as long as the work lasts
//   for (...) {
//     ...;
//     if (interrupt_signal() != 0) break;           // save the results so far
//   }
//   if (int signal = interrupt_signal()) throw Stopped(signal, "partial results:
//   out/results.jsonl");
//
// Work that reaches no safe point within kSecondsToStop is ended by the handler, with one line on
// standard error and exit code 128 + signal. Files written with write_atomically remain complete
// even then, and the process is not ended inside a KeepAlive.
//
// A second signal while the first is pending ends the process immediately, as if there were no
// handler.
#pragma once

#include <string>

#include "experiments/process/failure.h"

namespace aimle::experiments {

constexpr double kSecondsToStop = 1.2;

/// The signal (SIGINT or SIGTERM) that requested the end of the work, 0 if none or if there is no
/// handler any more. Thread-safe.
int interrupt_signal();

/// A task was abandoned because of a signal; its caller knows what is saved.
struct Interrupted : Stopped {
  explicit Interrupted(int signal) : Stopped(signal, "stopped") {}
};

/// Throws Interrupted after a signal: for loops whose partial result is useless.
void stop_if_interrupted();

/// Installs the handler; restores the previous one and clears the flag at the end. Nested handlers
/// do nothing.
class InterruptHandler {
 public:
  InterruptHandler();
  ~InterruptHandler();
  InterruptHandler(const InterruptHandler&) = delete;
  InterruptHandler& operator=(const InterruptHandler&) = delete;

  bool is_outermost() const { return is_outermost_; }
  /// The message if the work reaches no safe point in time; default "stopped". Has no effect in a
  /// nested handler.
  void set_late_message(const std::string& message) const;

 private:
  bool is_outermost_;
};

/// For loading and the like, where nothing is lost if the process ends: a signal ends it
/// immediately, with this message. Has no effect inside another handler.
class StopsAtOnce {
 public:
  StopsAtOnce(const InterruptHandler& handler, const std::string& message);
  ~StopsAtOnce();
  StopsAtOnce(const StopsAtOnce&) = delete;
  StopsAtOnce& operator=(const StopsAtOnce&) = delete;
};

/// While one exists the handler does not end the process: results are being saved.
class KeepAlive {
 public:
  KeepAlive();
  ~KeepAlive();
  KeepAlive(const KeepAlive&) = delete;
  KeepAlive& operator=(const KeepAlive&) = delete;
};

}  // namespace aimle::experiments
