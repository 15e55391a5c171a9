#include "experiments/engine/adam.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

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

/// A model's tensors after some steps on a device.
std::vector<at::Tensor> after_steps(at::Device device) {
  at::manual_seed(0);
  std::map<std::string, at::Tensor> parameters;
  for (const int64_t rows : {1, 70, 3000}) {
    parameters["of " + std::to_string(rows)] = at::randn({rows, 3}).to(device).requires_grad_(true);
  }
  Adam adam(parameters, {.lr = 0.01, .weight_decay = 0.1});
  for (int step = 0; step < 5; ++step) {
    adam.zero_grad();
    for (auto& [name, parameter] : parameters) {
      parameter.mutable_grad() = at::randn({parameter.size(0), 3}).to(device);
    }
    adam.step();
  }
  std::vector<at::Tensor> result;
  for (auto& [name, parameter] : parameters) result.push_back(parameter.detach().cpu());
  for (const auto& [name, tensor] : adam.state()) result.push_back(tensor.cpu());
  return result;
}

TEST(AdamOnDevice, TakesTheStepsOfTheCpu) {
  if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no GPU";
  const std::vector<at::Tensor> expected = after_steps(at::kCPU), found = after_steps(at::kCUDA);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LT((found[i] - expected[i]).abs().max().item<double>(), 1e-6);
  }
}

}  // namespace
}  // namespace aimle::experiments
