#include "experiments/engine/dense.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace aimle::experiments {
namespace {

using torch::nn::Linear;

/// The output and the gradients of x, weight and bias for a loss that is linear in the output.
template <class Layer>
std::vector<at::Tensor> pass(Linear& linear, const at::Tensor& x, const Layer& layer) {
  const at::Tensor leaf = x.detach().requires_grad_(true);
  linear->zero_grad();
  const at::Tensor y = layer(linear, leaf);
  const at::Tensor upstream = at::arange(y.numel(), y.options()).remainder(7).view_as(y) - 3;
  (y * upstream).sum().backward();
  return {y.detach(), leaf.grad(), linear->weight.grad().clone(), linear->bias.grad().clone()};
}

at::Tensor plain(const Linear& linear, const at::Tensor& x) {
  return at::linear(x, linear->weight, linear->bias);
}

at::Tensor plain_relu(const Linear& linear, const at::Tensor& x) { return plain(linear, x).relu(); }

TEST(Dense, HasTheBitsOfPyTorchOnTheCpu) {
  at::manual_seed(1);
  Linear linear(20, 11);
  for (const int64_t rows : {1, 3, 1000}) {
    const at::Tensor x = at::randn({rows, 20});
    const auto expect_equal = [&](const auto& layer, const auto& reference) {
      const auto found = pass(linear, x, layer), expected = pass(linear, x, reference);
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_TRUE(at::equal(found[i], expected[i])) << i;
    };
    expect_equal(dense, plain);
    expect_equal(dense_relu, plain_relu);
  }
}

TEST(DenseOnDevice, HasTheGradientsOfTheCpu) {
  if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no GPU";
  at::manual_seed(1);
  Linear linear(20, 12);
  linear->to(at::kDouble);
  // Sums of rows in one step, in two, and over a prime number of them.
  for (const int64_t rows : {1, 100, 1000, 11520, 1009}) {
    const at::Tensor x = at::randn({rows, 20}, at::kDouble);
    const auto expected = pass(linear, x, plain_relu);
    linear->to(at::kCUDA);
    const auto found = pass(linear, x.cuda(), dense_relu);
    linear->to(at::kCPU);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LT((found[i].cpu() - expected[i]).abs().max().item<double>(), 1e-9)
          << rows << ' ' << i;
    }
  }
}

TEST(Dense, GivesNoGradientToInputsThatNeedNone) {
  Linear linear(3, 2);
  dense_relu(linear, at::ones({4, 3})).sum().backward();
  EXPECT_TRUE(linear->weight.grad().defined());
}

}  // namespace
}  // namespace aimle::experiments
