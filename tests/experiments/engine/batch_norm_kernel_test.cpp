// The kernels of batch norm, run on the host.
#include "experiments/engine/batch_norm_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace aimle::experiments {
namespace {

constexpr float kUnset = std::numeric_limits<float>::quiet_NaN();
constexpr double kEps = 1e-3, kMomentum = 0.2;

std::vector<float> normal_values(int64_t count, float mean, std::mt19937& random) {
  std::normal_distribution<float> normal(mean, 2);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

struct Case {
  int64_t rows, columns;
  std::mt19937 random{1};
  // Means far from zero, which squares must not cancel.
  std::vector<float> x = normal_values(rows * columns, 30, random);
  std::vector<float> dy = normal_values(rows * columns, 1, random);
  std::vector<float> weight = normal_values(columns, 1, random);
  std::vector<float> bias = normal_values(columns, 0, random);
  std::vector<float> mean = of_columns(), inverse = of_columns();
  std::vector<double> scratch =
      std::vector<double>(static_cast<size_t>(norm_scratch(rows, columns)), kUnset);

  std::vector<float> of_columns() const {
    return std::vector<float>(static_cast<size_t>(columns), kUnset);
  }

  NormTask task() {
    return {.x = x.data(),
            .weight = weight.data(),
            .bias = bias.data(),
            .mean = mean.data(),
            .inverse = inverse.data(),
            .scratch = scratch.data(),
            .rows = rows,
            .columns = columns};
  }

  double mean_of(const std::vector<double>& values) const {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(rows);
  }

  std::vector<double> column(const std::vector<float>& matrix, size_t c) const {
    std::vector<double> values;
    for (size_t i = c; i < matrix.size(); i += static_cast<size_t>(columns)) {
      values.push_back(matrix[i]);
    }
    return values;
  }

  /// (x - mean) / deviation of a column, and its biased variance.
  std::vector<double> normalised(size_t c, double& mean, double& variance) const {
    std::vector<double> values = column(x, c), squares;
    mean = mean_of(values);
    for (double& value : values) value -= mean;
    for (const double value : values) squares.push_back(value * value);
    variance = mean_of(squares);
    for (double& value : values) value /= std::sqrt(variance + kEps);
    return values;
  }
};

std::vector<Case> cases() {
  std::vector<Case> result;
  // Rows of one and several blocks, columns that do not fill a block.
  for (const int64_t rows : {5, 63, 65, 3072, 3073, 7000}) {
    for (const int64_t columns : {1, 8, 35}) {
      if (rows * columns < 60000) result.push_back({.rows = rows, .columns = columns});
    }
  }
  return result;
}

TEST(BatchNormKernel, NormalisesAndMovesTheRunningStatistics) {
  for (Case& test : cases()) {
    SCOPED_TRACE(std::to_string(test.rows) + " x " + std::to_string(test.columns));
    std::vector<float> y(test.x.size(), kUnset);
    std::vector<float> running_mean(test.bias), running_variance(test.weight);
    int64_t batches = 4;
    norm_on_device(test.task(),
                   {.y = y.data(),
                    .running_mean = running_mean.data(),
                    .running_variance = running_variance.data(),
                    .batches = &batches,
                    .eps = kEps,
                    .momentum = kMomentum},
                   nullptr);
    EXPECT_EQ(batches, 5);
    for (size_t c = 0; c < test.weight.size(); ++c) {
      double mean = 0, variance = 0;
      const std::vector<double> normal = test.normalised(c, mean, variance);
      const std::vector<double> found = test.column(y, c);
      for (size_t r = 0; r < normal.size(); ++r) {
        ASSERT_NEAR(found[r], normal[r] * test.weight[c] + test.bias[c], 2e-4) << r << ' ' << c;
      }
      const auto rows = static_cast<double>(test.rows);
      ASSERT_NEAR(running_mean[c], 0.8 * test.bias[c] + 0.2 * mean, 1e-4);
      ASSERT_NEAR(running_variance[c], 0.8 * test.weight[c] + 0.2 * variance * (rows / (rows - 1)),
                  1e-4);
      ASSERT_NEAR(test.mean[c], mean, 1e-4);
      ASSERT_NEAR(test.inverse[c] * std::sqrt(variance + kEps), 1, 1e-6);
    }
  }
}

TEST(BatchNormKernel, GradientsAreTheFormula) {
  for (Case& test : cases()) {
    SCOPED_TRACE(std::to_string(test.rows) + " x " + std::to_string(test.columns));
    for (size_t c = 0; c < test.weight.size(); ++c) {
      double mean = 0, variance = 0;
      test.normalised(c, mean, variance);
      test.mean[c] = static_cast<float>(mean);
      test.inverse[c] = static_cast<float>(1 / std::sqrt(variance + kEps));
    }
    std::vector<float> dx(test.x.size(), kUnset);
    std::vector<float> dweight = test.of_columns(), dbias = test.of_columns();
    norm_gradients_on_device(
        test.task(),
        {.dy = test.dy.data(), .dx = dx.data(), .dweight = dweight.data(), .dbias = dbias.data()},
        nullptr);
    for (size_t c = 0; c < test.weight.size(); ++c) {
      double mean = 0, variance = 0;
      const std::vector<double> normal = test.normalised(c, mean, variance);
      const std::vector<double> dy = test.column(test.dy, c), found = test.column(dx, c);
      std::vector<double> products;
      for (size_t r = 0; r < normal.size(); ++r) products.push_back(dy[r] * normal[r]);
      const double mean_dy = test.mean_of(dy), mean_product = test.mean_of(products);
      for (size_t r = 0; r < normal.size(); ++r) {
        const double expected = (dy[r] - mean_dy - normal[r] * mean_product) * test.weight[c] /
                                std::sqrt(variance + kEps);
        ASSERT_NEAR(found[r], expected, 2e-4 * (1 + std::abs(expected))) << r << ' ' << c;
      }
      const auto rows = static_cast<double>(test.rows);
      ASSERT_NEAR(dweight[c], mean_product * rows, 1e-3 * (1 + std::sqrt(rows)));
      ASSERT_NEAR(dbias[c], mean_dy * rows, 1e-5 * rows);
    }
  }
}

}  // namespace
}  // namespace aimle::experiments
