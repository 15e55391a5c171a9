#include "experiments/engine/processes.h"

#include <gtest/gtest.h>

namespace aimle::experiments {
namespace {

TEST(Processes, SharesFollowEachOtherAndDifferByOne) {
  for (const int64_t size : {1, 2, 3, 8}) {
    for (const int64_t count : {8, 9, 15, 100}) {
      int64_t next = 0;
      for (int64_t rank = 0; rank < size; ++rank) {
        const Share share = share_of(count, {.rank = rank, .size = size});
        EXPECT_EQ(share.first, next);
        EXPECT_GE(share.count, count / size);
        EXPECT_LE(share.count, (count + size - 1) / size);
        next += share.count;
      }
      EXPECT_EQ(next, count);
    }
  }
}

TEST(Processes, OneIsAlone) {
  EXPECT_FALSE(processes().several());
  EXPECT_TRUE(processes().is_first());
  EXPECT_EQ(take_from_first("text"), "text");
  EXPECT_EQ(signal_of_any(), 0);
}

}  // namespace
}  // namespace aimle::experiments
