#include "experiments/process/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <stdexcept>
#include <thread>
#include <vector>

#include "experiments/process/interrupt.h"

namespace aimle::experiments {
namespace {

TEST(Workers, SaveAfterAnInterruptWithoutWaiting) {
  const InterruptHandler handler;
  std::atomic<bool> saved = false;
  std::atomic<int> ended = 0;
  run_tasks(
      2, 2,
      [&](int64_t i) {
        if (i == 0) std::raise(SIGINT);
        while (!saved) std::this_thread::yield();
        ++ended;
        stop_if_interrupted();
      },
      [&] {
        EXPECT_EQ(ended, 0);
        saved = true;
      });
  EXPECT_TRUE(saved);
}

TEST(Workers, EndBeforeAFailedSaveIsRethrown) {
  const InterruptHandler handler;
  std::atomic<bool> saved = false;
  std::atomic<int> begun = 0, ended = 0;
  const auto task = [&](int64_t i) {
    ++begun;
    if (i == 0) std::raise(SIGINT);
    while (!saved) std::this_thread::yield();
    ++ended;
  };
  EXPECT_THROW(run_tasks(2, 2, task,
                         [&] {
                           saved = true;
                           throw std::runtime_error("the disk is full");
                         }),
               std::runtime_error);
  EXPECT_EQ(ended, begun);
}

TEST(Workers, DoEveryTaskOnceAndRethrow) {
  std::vector<std::atomic<int>> done(200);
  run_tasks(200, 3, [&](int64_t i) { ++done[static_cast<size_t>(i)]; });
  for (const auto& count : done) EXPECT_EQ(count, 1);
  std::atomic<int> begun = 0;
  EXPECT_THROW(run_tasks(200, 2,
                         [&](int64_t) {
                           ++begun;
                           throw std::invalid_argument("task");
                         }),
               std::invalid_argument);
  EXPECT_LE(begun, 2);
}

TEST(Workers, BeginNothingAfterAnInterrupt) {
  const InterruptHandler handler;
  std::atomic<int> begun = 0;
  run_tasks(200, 2, [&](int64_t) {
    // Only one task raises the signal: a second one would find the default action and end the
    // process. The other task waits, so that it cannot begin a third task before the signal.
    if (begun++ == 0) std::raise(SIGINT);
    while (interrupt_signal() == 0) std::this_thread::yield();
  });
  EXPECT_LE(begun, 2);
}

}  // namespace
}  // namespace aimle::experiments
