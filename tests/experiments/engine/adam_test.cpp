#include "experiments/engine/adam.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace aimle::experiments {
namespace {

TEST(AdamTest, IsTheFormulaOfItsPaper) {
  at::manual_seed(0);
  const at::Tensor parameter = at::randn({5, 3}).requires_grad_(true);
  Adam adam({{"w", parameter}}, {.lr = 0.01});
  at::Tensor expected = parameter.detach().to(at::kDouble);
  at::Tensor m = at::zeros_like(expected), v = at::zeros_like(expected);
  for (int t = 1; t <= 20; ++t) {
    const at::Tensor gradient = at::randn({5, 3});
    adam.zero_grad();
    parameter.mutable_grad() = gradient.clone();
    adam.step();
    const at::Tensor g = gradient.to(at::kDouble);
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    expected = expected -
               0.01 * (m / (1 - std::pow(0.9, t))) / ((v / (1 - std::pow(0.999, t))).sqrt() + 1e-8);
  }
  EXPECT_LT((parameter.detach() - expected).abs().max().item<double>(), 1e-5);
  EXPECT_EQ(adam.state().at("steps").item<float>(), 20.0F);
}

}  // namespace
}  // namespace aimle::experiments
