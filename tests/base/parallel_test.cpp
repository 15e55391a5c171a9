#include "aimle/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace aimle {
namespace {

std::vector<int> visits(const Executor& executor, int64_t count, double ns_per_item) {
  std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
  parallel_for(executor, count, ns_per_item, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
  });
  return {seen.begin(), seen.end()};
}

TEST(ParallelFor, VisitsEveryItemOnceForAnyThreadCount) {
  for (int threads = 1; threads <= 8; ++threads) {
    for (const int64_t count : {0, 1, 2, 7, 8, 9, 1000, 1001}) {
      EXPECT_EQ(visits(thread_pool(threads), count, 1e6),
                std::vector<int>(static_cast<size_t>(count), 1))
          << "threads=" << threads << " count=" << count;
    }
  }
}

TEST(ParallelFor, KeepsSmallWorkOnTheCallingThread) {
  const auto caller = std::this_thread::get_id();
  parallel_for(thread_pool(8), 100, 10.0, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 100);
  });
}

TEST(ParallelFor, RethrowsThePartsException) {
  for (const Executor& executor : {sequential(), thread_pool(4)}) {
    EXPECT_THROW(parallel_for(executor, 4, 1e9,
                              [](int64_t begin, int64_t) {
                                if (begin == 0) throw std::runtime_error("part 0");
                              }),
                 std::runtime_error);
    EXPECT_EQ(visits(executor, 100, 1e6), std::vector<int>(100, 1));
  }
}

TEST(ParallelFor, NestedAndConcurrentCallsFinish) {
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 200; ++repeat) {
        parallel_for(thread_pool(4), 4, 1e9, [&](int64_t begin, int64_t end) {
          parallel_for(thread_pool(4), end - begin, 1e9,
                       [&](int64_t b, int64_t e) { total += e - b; });
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 4 * 200 * 4);
}

}  // namespace
}  // namespace aimle
