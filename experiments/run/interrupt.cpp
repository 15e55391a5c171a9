#include "experiments/run/interrupt.h"

#include <array>
#include <atomic>
#include <csignal>

namespace aimle::experiments {
namespace {

constexpr std::array<int, 2> kSignals = {SIGINT, SIGTERM};
std::atomic<int> seen = 0;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may not wait for a lock");
std::array<struct sigaction, kSignals.size()> before;

extern "C" void note_signal(int signal) { seen.store(signal); }

}  // namespace

int interrupt_signal() { return seen.load(); }

InterruptHandler::InterruptHandler() {
  seen.store(0);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction action = {};
    action.sa_handler = note_signal;
    sigemptyset(&action.sa_mask);
    // SA_RESETHAND: the second signal of a kind finds the default action again.
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    sigaction(kSignals[i], &action, &before[i]);
  }
}

InterruptHandler::~InterruptHandler() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before[i], nullptr);
}

}  // namespace aimle::experiments
