// The bounds of the discrete VAE against listing every code.
#include "experiments/dvae/evidence.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "aimle/torch/functions.h"
#include "experiments/dvae/losses.h"
#include "experiments/engine/randomness.h"

namespace aimle::experiments::dvae {
namespace {

at::Tensor key(int64_t number) { return noise_keys(7, Purpose::kEvaluate, number, 1, at::kCPU)[0]; }

/// log q of every k-subset of a row, [*, N], and the subsets, [N, n].
struct Listed {
  at::Tensor subsets, log_q;
};

Listed list(const at::Tensor& theta, int64_t k, double temperature) {
  const at::Tensor subsets = structures(topk(k), {theta.size(-1)}).to(at::kDouble);
  const at::Tensor scores = (theta.to(at::kDouble) / temperature).matmul(subsets.t());
  return {.subsets = subsets, .log_q = scores.log_softmax(-1)};
}

// Every row has ten scores at +10 and ten at -10: one subset of ten is all but certain, and naming
// it costs log C(20, 10). The softmax of such a row says nothing of that.
TEST(DvaeEvidence, ACertainSubsetCostsTheLogarithmOfTheirNumber) {
  const at::Tensor row = at::cat({at::full({10}, 10.0), at::full({10}, -10.0)});
  const at::Tensor theta = row.expand({1, 20, 20}).contiguous();
  EXPECT_NEAR(CodeDistribution(theta, 10, 1.0).kl()[0].item<double>(), 242.5, 0.05);
  EXPECT_NEAR(CodeDistribution(theta, 10, 0.0).kl()[0].item<double>(), 20 * std::log(184756.0),
              1e-6);
  EXPECT_NEAR(softmax_kl(theta)[0].item<double>(), 13.9, 0.05);
}

TEST(DvaeEvidence, KlIsThatOfTheListedSubsets) {
  at::manual_seed(0);
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{6, 1}, {6, 3}, {7, 5}}) {
    for (const double temperature : {0.3, 1.0, 2.5}) {
      SCOPED_TRACE(std::to_string(k) + " of " + std::to_string(n));
      const at::Tensor theta = at::randn({3, 4, n}) * 2;
      const Listed listed = list(theta, k, temperature);
      const double count = std::log(static_cast<double>(listed.subsets.size(0)));
      const at::Tensor expected = (listed.log_q.exp() * (listed.log_q + count)).sum({1, 2});
      const at::Tensor kl = CodeDistribution(theta, k, temperature).kl();
      EXPECT_LT((kl - expected).abs().max().item<double>(), 1e-9);
    }
  }
}

TEST(DvaeEvidence, KlOfOneEntryIsThatOfTheTemperedSoftmax) {
  at::manual_seed(1);
  const at::Tensor theta = at::randn({5, 3, 8}) * 3;
  const at::Tensor same = CodeDistribution(theta, 1, 1.0).kl() - softmax_kl(theta);
  EXPECT_LT(same.abs().max().item<double>(), 1e-5);
  const at::Tensor tempered = CodeDistribution(theta, 1, 0.5).kl() - softmax_kl(theta / 0.5);
  EXPECT_LT(tempered.abs().max().item<double>(), 1e-5);
}

TEST(DvaeEvidence, LogRatioIsThatOfTheListedSubsets) {
  at::manual_seed(2);
  const at::Tensor theta = at::randn({2, 1, 6}) * 2;
  const Listed listed = list(theta, 3, 0.7);
  const at::Tensor z = listed.subsets.expand({2, 1, -1, -1});
  const double count = std::log(static_cast<double>(listed.subsets.size(0)));
  const at::Tensor ratio = CodeDistribution(theta, 3, 0.7).log_ratio(z);
  EXPECT_LT((ratio + count + listed.log_q.select(1, 0)).abs().max().item<double>(), 1e-9);
}

TEST(DvaeEvidence, CodesComeAsOftenAsTheyAreProbable) {
  at::manual_seed(3);
  constexpr int64_t kCodes = 20000;
  const at::Tensor theta = at::randn({1, 2, 5});
  const Listed listed = list(theta, 2, 0.6);
  const at::Tensor z = CodeDistribution(theta, 2, 0.6).draw(key(0), kCodes);
  EXPECT_EQ(z.scalar_type(), at::kFloat);
  // A code is the subset with which it has two entries in common.
  const at::Tensor is = z.to(at::kDouble).matmul(listed.subsets.t()).ge(1.5);
  const at::Tensor share = is.to(at::kDouble).mean(2);
  // Ten shares in each of two rows; five standard deviations.
  EXPECT_LT((share - listed.log_q.exp()).abs().max().item<double>(), 5 * 0.5 / std::sqrt(kCodes));
}

TEST(DvaeEvidence, WithoutNoiseTheBestCodeIsCertain) {
  at::manual_seed(4);
  const at::Tensor theta = at::randn({3, 2, 5});
  const CodeDistribution certain(theta, 2, 0.0);
  const at::Tensor z = certain.draw(key(0), 4);
  EXPECT_TRUE(z.equal(solve(topk(2), theta).unsqueeze(2).expand({-1, -1, 4, -1})));
  EXPECT_NEAR(certain.log_ratio(z)[0][3].item<double>(), -2 * std::log(10.0), 1e-9);
}

// Two rows of 2 of 4, 36 codes, each with some p(x | z): evidence, NELBO and IW_K by listing and by
// drawing.
TEST(DvaeEvidence, BoundsAreInOrder) {
  at::manual_seed(5);
  constexpr int64_t kCodes = 8, kDraws = 4000;
  const at::Tensor theta = at::randn({1, 2, 4});
  const at::Tensor log_likelihood = at::randn({6, 6}, at::kDouble) * 3 - 100;
  const Listed listed = list(theta, 2, 1.0);
  const double log_count = std::log(36.0);
  const double evidence =
      log_count - log_likelihood.logsumexp(at::IntArrayRef({0, 1})).item<double>();
  const at::Tensor log_q = listed.log_q[0][0].unsqueeze(1) + listed.log_q[0][1].unsqueeze(0);
  const double nelbo = (log_q.exp() * (log_q + log_count - log_likelihood)).sum().item<double>();

  const CodeDistribution codes(theta.expand({kDraws, -1, -1}).contiguous(), 2, 1.0);
  const at::Tensor z = codes.draw(key(1), kCodes);
  const at::Tensor which = z.to(at::kDouble).matmul(listed.subsets.t()).argmax(-1);
  const at::Tensor found =
      log_likelihood.view({36}).index({which.select(1, 0) * 6 + which.select(1, 1)});
  const at::Tensor log_weights = found + codes.log_ratio(z);
  const at::Tensor single = -log_weights.flatten();
  const double deviation = single.std().item<double>() / std::sqrt(single.numel());
  EXPECT_NEAR(single.mean().item<double>(), nelbo, 5 * deviation);
  EXPECT_NEAR(codes.kl()[0].item<double>() - (log_q.exp() * log_likelihood).sum().item<double>(),
              nelbo, 1e-9);

  const at::Tensor weighted = importance_weighted_bound(log_weights);
  const double error = weighted.std().item<double>() / std::sqrt(weighted.numel());
  EXPECT_GT(weighted.mean().item<double>(), evidence - 5 * error);
  EXPECT_LT(weighted.mean().item<double>(), nelbo - 5 * error);
  // E mean_s w_s = p(x): the weights average to the evidence itself.
  const at::Tensor weights = (log_weights + evidence).exp();
  EXPECT_NEAR(weights.mean().item<double>(), 1.0,
              5 * weights.std().item<double>() / std::sqrt(weights.numel()));
}

TEST(DvaeEvidence, BinarisedPixelsAreBlackAsOftenAsGreySays) {
  const at::Tensor x = at::tensor({0.0F, 0.1F, 0.5F, 0.9F, 1.0F}).expand({20000, 5}).contiguous();
  const at::Tensor b = binarise(x, key(2));
  EXPECT_TRUE(b.eq(0).logical_or(b.eq(1)).all().item<bool>());
  EXPECT_LT((b.mean(0) - x[0]).abs().max().item<double>(), 5 * 0.5 / std::sqrt(20000.0));
  EXPECT_EQ(b.select(1, 0).sum().item<double>(), 0);
  EXPECT_EQ(b.select(1, 4).sum().item<double>(), 20000);
  EXPECT_TRUE(b.equal(binarise(x, key(2))));
}

}  // namespace
}  // namespace aimle::experiments::dvae
