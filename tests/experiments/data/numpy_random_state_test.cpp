#include "experiments/data/numpy_random_state.h"

#include <gtest/gtest.h>

#include <vector>

namespace aimle::experiments {
namespace {

// Golden values printed by NumPy 2.4.
TEST(RandomState, IsNumpys) {
  const std::vector<double> normal = RandomState(0).randn(3);
  EXPECT_EQ(normal,
            (std::vector<double>{1.764052345967664, 0.4001572083672233, 0.9787379841057392}));
  EXPECT_EQ(RandomState(0).permutation(10), (std::vector<int64_t>{2, 8, 4, 9, 1, 6, 7, 3, 0, 5}));
  RandomState random(123);
  EXPECT_EQ(random.rand(), 0.6964691855978616);
  EXPECT_EQ(random.randn(), -0.9520972068613222);
  EXPECT_EQ(random.randn(), -0.7454410594826583);
}

}  // namespace
}  // namespace aimle::experiments
