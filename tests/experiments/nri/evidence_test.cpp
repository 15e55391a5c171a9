// The KL of latent trees against listing every tree.
#include "experiments/nri/evidence.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "aimle/torch/functions.h"
#include "experiments/engine/randomness.h"

namespace aimle::experiments::nri {
namespace {

constexpr int64_t kVertices = 5, kFewPairs = 10, kTrees = 125;

at::Tensor listed_trees() {
  return structures(spanning_tree(kVertices), {kFewPairs}).to(at::kDouble);
}

TEST(NriEvidence, KlIsThatOfTheListedTrees) {
  at::manual_seed(0);
  const at::Tensor trees = listed_trees();
  ASSERT_EQ(trees.size(0), kTrees);
  const at::Tensor theta = at::randn({6, kFewPairs}) * 2;
  for (const double temperature : {0.1, 1.0, 3.0}) {
    const at::Tensor log_q =
        (theta.to(at::kDouble) / temperature).matmul(trees.t()).log_softmax(-1);
    const at::Tensor expected = (log_q.exp() * (log_q + std::log(double{kTrees}))).sum(-1);
    const at::Tensor kl = tree_kl(theta, kVertices, temperature);
    EXPECT_LT((kl - expected).abs().max().item<double>(), 1e-9) << temperature;
  }
}

TEST(NriEvidence, AnyTreeOfTenIsOneOfAHundredMillion) {
  at::manual_seed(1);
  const at::Tensor theta = at::randn({2, 45});
  const double certain = std::log(1e8);
  EXPECT_NEAR(tree_kl(theta, 10, 0.0)[1].item<double>(), certain, 1e-9);
  EXPECT_NEAR(tree_kl(theta, 10, 1e-3)[1].item<double>(), certain, 1e-3);
  EXPECT_NEAR(tree_kl(at::zeros({1, 45}), 10, 1.0)[0].item<double>(), 0.0, 1e-9);
}

TEST(NriEvidence, TreesComeAsOftenAsTheyAreProbable) {
  at::manual_seed(2);
  constexpr int64_t kDraws = 20000;
  const at::Tensor theta = at::randn({kFewPairs}), trees = listed_trees();
  const at::Tensor key = noise_keys(3, Purpose::kEvaluate, 0, 1, at::kCPU)[0];
  const at::Tensor z = draw_tree(theta.expand({kDraws, -1}).contiguous(), kVertices, 0.5, key);
  EXPECT_EQ(z.scalar_type(), at::kFloat);
  // The tree with which a drawn one has all four edges in common.
  const at::Tensor share = z.to(at::kDouble).matmul(trees.t()).ge(3.5).to(at::kDouble).mean(0);
  const at::Tensor q = (theta.to(at::kDouble) / 0.5).matmul(trees.t().contiguous()).softmax(-1);
  EXPECT_LT((share - q).abs().max().item<double>(), 5 * 0.5 / std::sqrt(double{kDraws}));
  EXPECT_TRUE(draw_tree(theta.unsqueeze(0), kVertices, 0.0, key)
                  .equal(solve(spanning_tree(kVertices), theta.unsqueeze(0))));
}

}  // namespace
}  // namespace aimle::experiments::nri
