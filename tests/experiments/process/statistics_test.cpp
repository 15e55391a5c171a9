#include "experiments/process/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace aimle::experiments {
namespace {

TEST(Moments, AreThoseOfTheNumbers) {
  Moments moments;
  for (const double value : {1.0, 2.0, 4.0}) moments.add(value);
  EXPECT_DOUBLE_EQ(moments.mean(), 7.0 / 3.0);
  EXPECT_DOUBLE_EQ(moments.variance(), 7.0 / 3.0);
  EXPECT_DOUBLE_EQ(moments.standard_error(), std::sqrt(7.0) / 3.0);
}

}  // namespace
}  // namespace aimle::experiments
