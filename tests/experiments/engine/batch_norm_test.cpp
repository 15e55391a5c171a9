#include "experiments/engine/batch_norm.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace aimle::experiments {
namespace {

/// The output, the gradients of x, weight and bias, and the running statistics after two batches.
std::vector<at::Tensor> pass(at::Tensor x, at::Device device, at::ScalarType type) {
  at::manual_seed(2);
  BatchNorm1d norm(torch::nn::BatchNormOptions(x.size(1)).momentum(0.3));
  norm->weight.detach().normal_();
  norm->bias.detach().normal_();
  norm->to(device);
  if (type != at::kFloat) norm->to(type);  // which also converts the number of batches
  x = x.to(device, type);
  {
    const at::NoGradGuard no_grad;
    norm(x + 1);
  }
  const at::Tensor leaf = x.detach().requires_grad_(true);
  const at::Tensor y = norm(leaf);
  (y * at::arange(y.numel(), y.options()).remainder(7).view_as(y)).sum().backward();
  std::vector<at::Tensor> result = {
      y.detach(),         leaf.grad(),       norm->weight.grad(),      norm->bias.grad(),
      norm->running_mean, norm->running_var, norm->num_batches_tracked};
  norm->eval();
  result.push_back(norm(x).detach());
  for (at::Tensor& tensor : result) tensor = tensor.to(at::kCPU, at::kDouble);
  return result;
}

void expect_close(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const double scale = 1 + expected[i].abs().max().item<double>();
    EXPECT_LT((found[i] - expected[i]).abs().max().item<double>(), 1e-4 * scale) << i;
  }
}

TEST(BatchNorm, NormalisesByTheBatchAndMovesTheStatistics) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({50, 7}, at::kDouble);
  const std::vector<at::Tensor> found = pass(x, at::kCPU, at::kDouble);
  EXPECT_LT((found[4] - (0.7 * 0.3 * (x.mean(0) + 1) + 0.3 * x.mean(0))).abs().max().item<double>(),
            1e-9);
  EXPECT_EQ(found[6].item<double>(), 2);
}

/// In float32 by the kernels of this project.
TEST(BatchNormOnDevice, IsThatOfTheCpu) {
  if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no GPU";
  at::manual_seed(1);
  for (const int64_t rows : {5, 64, 1000, 7000}) {
    SCOPED_TRACE(rows);
    const at::Tensor x = at::randn({rows, 37}, at::kDouble) * 2 + 3;
    const std::vector<at::Tensor> expected = pass(x, at::kCPU, at::kDouble);
    expect_close(pass(x, at::kCUDA, at::kFloat), expected);
    expect_close(pass(x, at::kCUDA, at::kDouble), expected);
  }
}

}  // namespace
}  // namespace aimle::experiments
