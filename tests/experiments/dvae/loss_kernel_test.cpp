// The kernels of the discrete VAE's losses, run on the host.
#include "experiments/dvae/loss_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace aimle::experiments::dvae {
namespace {

constexpr float kUnset = std::numeric_limits<float>::quiet_NaN();

struct Case {
  LossInputs sizes;
  std::vector<float> logits, x, theta;

  Case(int64_t batch, int64_t samples, int64_t pixels, int64_t rows, int64_t size)
      : sizes{.logits = nullptr,
              .x = nullptr,
              .theta = nullptr,
              .batch = batch,
              .samples = samples,
              .pixels = pixels,
              .rows = rows,
              .size = size} {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, 5);
    std::uniform_real_distribution<float> uniform;
    for (int64_t i = 0; i < batch * samples * pixels; ++i) logits.push_back(normal(random));
    for (int64_t i = 0; i < batch * pixels; ++i) x.push_back(uniform(random));
    for (int64_t i = 0; i < batch * rows * size; ++i) theta.push_back(normal(random));
    if (!logits.empty()) logits[0] = 100;  // exp overflows
    if (logits.size() > 1) logits[1] = -100;
  }

  LossInputs inputs() const {
    LossInputs result = sizes;
    result.logits = logits.data();
    result.x = x.data();
    result.theta = theta.data();
    return result;
  }

  double logit(size_t i) const { return logits[i]; }
  double target(size_t i) const {
    const auto pixels = static_cast<size_t>(sizes.pixels);
    return x[i / (pixels * static_cast<size_t>(sizes.samples)) * pixels + i % pixels];
  }

  /// log q + log size of every entry of theta, q the softmax of its row.
  std::vector<double> log_ratios() const {
    std::vector<double> result;
    const auto size = static_cast<size_t>(sizes.size);
    for (size_t i = 0; i < theta.size(); ++i) {
      double sum = 0;
      for (size_t j = i / size * size; j < (i / size + 1) * size; ++j) sum += std::exp(theta[j]);
      result.push_back(theta[i] - std::log(sum) + std::log(sizes.size));
    }
    return result;
  }

  double q(double log_ratio) const { return std::exp(log_ratio) / static_cast<double>(sizes.size); }

  std::vector<double> bce() const {
    std::vector<double> result(static_cast<size_t>(sizes.batch * sizes.samples));
    for (size_t i = 0; i < logits.size(); ++i) {
      const double l = logit(i);
      result[i / static_cast<size_t>(sizes.pixels)] +=
          std::max(l, 0.0) + std::log1p(std::exp(-std::abs(l))) - target(i) * l;
    }
    return result;
  }

  /// The KL of groups of so many entries: of rows, or of examples.
  std::vector<double> kl(int64_t entries) const {
    std::vector<double> result(theta.size() / static_cast<size_t>(entries));
    const std::vector<double> ratios = log_ratios();
    for (size_t i = 0; i < ratios.size(); ++i) {
      result[i / static_cast<size_t>(entries)] += q(ratios[i]) * ratios[i];
    }
    return result;
  }
};

std::vector<Case> cases() {
  return {Case(3, 4, 700, 5, 20), Case(1, 1, 1, 1, 2), Case(2, 1, 256, 9, 33),
          Case(5, 2, 31, 20, 100)};
}

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

void expect_near(const std::vector<float>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-5 * (1 + std::abs(expected[i]))) << i;
  }
}

TEST(LossKernel, LossesAreTheirFormulas) {
  for (const Case& test : cases()) {
    std::vector<float> bce(test.bce().size(), kUnset);
    std::vector<float> kl(static_cast<size_t>(test.sizes.batch), kUnset);
    losses_on_device(test.inputs(), bce.data(), kl.data(), nullptr);
    expect_near(bce, test.bce());
    expect_near(kl, test.kl(test.sizes.rows * test.sizes.size));

    std::vector<float> alone(bce.size(), kUnset);
    LossInputs without_kl = test.inputs();
    without_kl.theta = nullptr;
    losses_on_device(without_kl, alone.data(), nullptr, nullptr);
    EXPECT_EQ(alone, bce);
  }
}

TEST(LossKernel, SumsAreWeighted) {
  const LossWeights weights = {.kl = 0.7, .share = 0.25};
  for (const Case& test : cases()) {
    const std::vector<double> bce = test.bce(), kl = test.kl(test.sizes.rows * test.sizes.size);
    const std::vector<float> given_bce(bce.begin(), bce.end()), given_kl(kl.begin(), kl.end());
    float objective = kUnset;
    std::vector<double> means(3);
    sum_losses_on_device(test.sizes, given_bce.data(), given_kl.data(), weights,
                         {.objective = &objective, .means = means.data()}, nullptr);
    const auto batch = static_cast<double>(test.sizes.batch);
    const double bce_mean = sum_of(bce) / static_cast<double>(bce.size());
    const double kl_mean = sum_of(kl) / batch;
    const double expected = (sum_of(bce) + 0.7 * sum_of(kl)) / batch * 0.25;
    EXPECT_NEAR(objective, expected, 1e-6 * (1 + expected));
    EXPECT_NEAR(means[0], bce_mean + kl_mean / static_cast<double>(test.sizes.samples), 1e-4);
    EXPECT_NEAR(means[1], bce_mean, 1e-4);
    EXPECT_NEAR(means[2], kl_mean, 1e-4);
  }
}

TEST(LossKernel, GradientsAreTheirFormulas) {
  const LossWeights weights = {.kl = 0.7, .share = 0.25};
  const float upstream = 3;
  for (const Case& test : cases()) {
    std::vector<float> d_logits(test.logits.size(), kUnset), d_theta(test.theta.size(), kUnset);
    loss_gradients_on_device(test.inputs(), weights, &upstream, d_logits.data(), d_theta.data(),
                             nullptr);
    const double weight = 3 * 0.25 / static_cast<double>(test.sizes.batch);
    std::vector<double> expected;
    for (size_t i = 0; i < test.logits.size(); ++i) {
      expected.push_back((1 / (1 + std::exp(-test.logit(i))) - test.target(i)) * weight);
    }
    expect_near(d_logits, expected);

    const std::vector<double> ratios = test.log_ratios(), kl_of_row = test.kl(test.sizes.size);
    expected.clear();
    for (size_t i = 0; i < ratios.size(); ++i) {
      const double kl = kl_of_row[i / static_cast<size_t>(test.sizes.size)];
      expected.push_back(test.q(ratios[i]) * (ratios[i] - kl) * weight * 0.7);
    }
    expect_near(d_theta, expected);
  }
}

}  // namespace
}  // namespace aimle::experiments::dvae
