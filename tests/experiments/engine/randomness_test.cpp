#include "experiments/engine/randomness.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace aimle::experiments {
namespace {

TEST(Randomness, AnEpochVisitsEveryExampleOnce) {
  for (const int64_t examples : {1, 2, 7, 1000}) {
    const at::Tensor order = epoch_order(3, 5, examples, at::kCPU);
    EXPECT_TRUE(std::get<0>(order.sort()).equal(at::arange(examples))) << examples;
    EXPECT_TRUE(order.equal(epoch_order(3, 5, examples, at::kCPU)));
  }
  EXPECT_FALSE(epoch_order(3, 5, 1000, at::kCPU).equal(epoch_order(3, 6, 1000, at::kCPU)));
  EXPECT_FALSE(epoch_order(3, 5, 1000, at::kCPU).equal(epoch_order(4, 5, 1000, at::kCPU)));
}

// The place of an example is uniform: each of n places is met trials / n times, within five
// standard deviations of the binomial.
TEST(Randomness, OrdersAreUniform) {
  constexpr int64_t kExamples = 8, kTrials = 4000;
  at::Tensor met = at::zeros({kExamples, kExamples});
  for (int64_t epoch = 0; epoch < kTrials; ++epoch) {
    const at::Tensor order = epoch_order(1, epoch, kExamples, at::kCPU);
    for (int64_t i = 0; i < kExamples; ++i) met[i][order[i].item<int64_t>()] += 1;
  }
  const double mean = static_cast<double>(kTrials) / kExamples;
  const double deviation = std::sqrt(mean * (1 - 1.0 / kExamples));
  EXPECT_LT((met - mean).abs().max().item<double>(), 5 * deviation);
}

TEST(Randomness, KeysDifferBySeedPurposeAndStep) {
  std::set<int64_t> seen;
  for (const int64_t seed : {0, 1}) {
    for (const Purpose purpose : {Purpose::kTrain, Purpose::kEvaluate}) {
      const at::Tensor keys = noise_keys(seed, purpose, 0, 100, at::kCPU);
      EXPECT_TRUE(keys.slice(0, 10, 20).equal(noise_keys(seed, purpose, 10, 10, at::kCPU)));
      for (int64_t i = 0; i < 100; ++i) seen.insert(keys[i][0].item<int64_t>());
    }
  }
  EXPECT_EQ(seen.size(), 400U);
}

TEST(Randomness, DropoutKeepsTheMeanAndRepeats) {
  const at::Tensor x = at::ones({100, 200});
  const at::Tensor key = noise_keys(0, Purpose::kTrain, 0, 1, at::kCPU)[0];
  const at::Tensor y = keyed_dropout(x, 0.2, key);
  EXPECT_TRUE(y.equal(keyed_dropout(x, 0.2, key)));
  EXPECT_FALSE(y.equal(keyed_dropout(x, 0.2, subkey(key, 1))));
  const double dropped = y.eq(0).to(at::kFloat).mean().item<double>();
  EXPECT_NEAR(dropped, 0.2, 5 * std::sqrt(0.16 / 20000));
  EXPECT_TRUE(y.ne(0).logical_and(y.ne(1.25)).any().item<bool>() == false);
}

}  // namespace
}  // namespace aimle::experiments
