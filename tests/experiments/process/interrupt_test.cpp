#include "experiments/process/interrupt.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "experiments/process/failure.h"

namespace aimle::experiments {
namespace {

TEST(Interrupt, IsAFlagWhileTheHandlerLives) {
  {
    const InterruptHandler handler;
    EXPECT_EQ(interrupt_signal(), 0);
    std::raise(SIGTERM);
    EXPECT_EQ(interrupt_signal(), SIGTERM);
  }
  EXPECT_EQ(interrupt_signal(), 0);
}

TEST(Interrupt, NestedHandlersKeepTheFlag) {
  const InterruptHandler outer;
  std::raise(SIGINT);
  {
    const InterruptHandler inner;
    EXPECT_EQ(interrupt_signal(), SIGINT);
    EXPECT_THROW(stop_if_interrupted(), Interrupted);
  }
  EXPECT_EQ(interrupt_signal(), SIGINT);
}

// Death tests run in a process of their own.
TEST(InterruptDeathTest, EndsWorkThatReachesNoSafePoint) {
  EXPECT_EXIT(
      {
        const InterruptHandler handler;
        handler.set_late_message("stopped late");
        std::raise(SIGINT);
        for (;;) std::this_thread::yield();
      },
      testing::ExitedWithCode(130), "^aimle: stopped late\n$");
}

TEST(InterruptDeathTest, EndsLoadingAtOnce) {
  EXPECT_EXIT(
      {
        const InterruptHandler handler;
        const StopsAtOnce loading(handler, "stopped while loading");
        std::raise(SIGTERM);
        std::_Exit(0);  // not reached
      },
      testing::ExitedWithCode(143), "^aimle: stopped while loading\n$");
}

TEST(InterruptDeathTest, WaitsUntilResultsAreSaved) {
  EXPECT_EXIT(
      {
        const InterruptHandler handler;
        std::raise(SIGINT);
        const auto start = std::chrono::steady_clock::now();
        const std::chrono::duration<double> longer(kSecondsToStop + 0.2);
        {
          const KeepAlive saving;
          while (std::chrono::steady_clock::now() - start < longer) std::this_thread::yield();
          std::fputs("saved\n", stderr);
        }
        for (;;) std::this_thread::yield();
      },
      testing::ExitedWithCode(130), "^saved\naimle: stopped\n$");
}

}  // namespace
}  // namespace aimle::experiments
