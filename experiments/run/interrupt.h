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
// A second signal while the first is pending ends the process at once, as if nothing had been
// installed: files written with write_atomically stay whole even then.
#pragma once

namespace aimle::experiments {

/// The signal (SIGINT or SIGTERM) that asked the work to end, 0 if none did. Safe on any thread.
int interrupt_signal();

/// Installs the handler and clears the flag; puts back what was there before.
class InterruptHandler {
 public:
  InterruptHandler();
  ~InterruptHandler();
  InterruptHandler(const InterruptHandler&) = delete;
  InterruptHandler& operator=(const InterruptHandler&) = delete;
};

}  // namespace aimle::experiments
