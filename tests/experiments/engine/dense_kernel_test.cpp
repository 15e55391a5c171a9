// The kernel of dense layers' backward pass, run on the host.
#include "experiments/engine/dense_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace aimle::experiments {
namespace {

/// The gradient of the activation's input, for an output y.
double formula(Activation activation, double given, double y) {
  if (activation == Activation::kNone || y > 0) return given;
  return activation == Activation::kElu ? given * (y + 1) : 0;
}

void expect_formula(int64_t rows, int64_t columns, Activation activation) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const auto entries = static_cast<size_t>(rows * columns);
  constexpr float kUnset = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> given, output, passed(entries, kUnset);
  for (size_t i = 0; i < entries; ++i) {
    given.push_back(normal(random));
    const float x = normal(random);
    output.push_back(x > 0 ? x : activation == Activation::kElu ? std::expm1(x) : 0.0F);
  }
  std::vector<float> sums(static_cast<size_t>(columns), kUnset);
  std::vector<float> scratch(static_cast<size_t>(layer_gradient_scratch(rows, columns)), kUnset);
  pass_on_device({.given = given.data(),
                  .output = output.data(),
                  .passed = passed.data(),
                  .sums = sums.data(),
                  .scratch = scratch.data(),
                  .rows = rows,
                  .columns = columns},
                 activation, nullptr);
  for (size_t column = 0; column < sums.size(); ++column) {
    double sum = 0;
    for (size_t i = column; i < entries; i += sums.size()) {
      const double expected = formula(activation, given[i], output[i]);
      sum += expected;
      if (activation == Activation::kNone) continue;
      ASSERT_NEAR(passed[i], expected, 1e-6) << i;
    }
    ASSERT_NEAR(sums[column], sum, 1e-3) << column;
  }
}

TEST(DenseKernel, PassesGradientsAndSumsThemOverTheRows) {
  for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kElu}) {
    // Rows of no, one and several blocks; columns that do not fill a block.
    for (const int64_t rows : {0, 1, 100, 127, 1000, 3072, 3073, 7000}) {
      for (const int64_t columns : {1, 8, 13}) expect_formula(rows, columns, activation);
    }
  }
}

TEST(DenseKernel, TakesMatricesWithoutColumns) {
  pass_on_device({.given = nullptr,
                  .output = nullptr,
                  .passed = nullptr,
                  .sums = nullptr,
                  .scratch = nullptr,
                  .rows = 3,
                  .columns = 0},
                 Activation::kRelu, nullptr);
}

}  // namespace
}  // namespace aimle::experiments
