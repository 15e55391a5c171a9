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

at::Tensor plain_elu(const Linear& linear, const at::Tensor& x) {
  return at::elu(plain(linear, x));
}

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

TEST(Dense, HasTheGradientOfElu) {
  at::manual_seed(1);
  Linear linear(20, 11);
  linear->to(at::kDouble);
  const at::Tensor x = at::randn({30, 20}, at::kDouble);
  const auto found = pass(linear, x, dense_elu), expected = pass(linear, x, plain_elu);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LT((found[i] - expected[i]).abs().max().item<double>(), 1e-12) << i;
  }
}

TEST(Dense, SumsRows) {
  const at::Tensor x = at::arange(6.0).view({3, 2});
  EXPECT_TRUE(at::equal(sum_of_rows(x), x.sum(0)));
  EXPECT_TRUE(at::equal(sum_of_rows(x.t()), x.t().sum(0)));
}

/// In float64, and in float32 by the kernels of this project.
TEST(DenseOnDevice, HasTheGradientsOfTheCpu) {
  if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no GPU";
  const auto expect_close = [](const auto& layer, const auto& reference) {
    for (const int64_t rows : {1, 100, 1000, 11520, 1009}) {
      for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
        at::manual_seed(1);
        Linear linear(20, 12);
        linear->to(at::kDouble);
        // Whole numbers and halves, so that no sign before an activation depends on rounding.
        const at::Tensor x = at::randint(-3, 4, {rows, 20}, at::kDouble);
        {
          const at::NoGradGuard no_grad;
          linear->weight.random_(-3, 4);
          linear->bias.fill_(0.5);
        }
        const auto expected = pass(linear, x, reference);
        linear->to(at::kCUDA, type);
        const auto found = pass(linear, x.to(at::kCUDA, type), layer);
        for (size_t i = 0; i < expected.size(); ++i) {
          const double scale = 1 + expected[i].abs().max().template item<double>();
          EXPECT_LT((found[i].cpu() - expected[i]).abs().max().template item<double>(),
                    scale * (type == at::kDouble ? 1e-12 : 1e-4))
              << rows << ' ' << type << ' ' << i;
        }
      }
    }
  };
  expect_close(dense, plain);
  expect_close(dense_relu, plain_relu);
  expect_close(dense_elu, plain_elu);
}

TEST(Dense, GivesNoGradientToInputsThatNeedNone) {
  Linear linear(3, 2);
  dense_relu(linear, at::ones({4, 3})).sum().backward();
  EXPECT_TRUE(linear->weight.grad().defined());
}

}  // namespace
}  // namespace aimle::experiments
