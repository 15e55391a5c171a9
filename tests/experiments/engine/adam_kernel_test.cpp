// The kernel of Adam, run on the host.
#include "experiments/engine/adam_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

namespace aimle::experiments {
namespace {

struct Model {
  std::vector<float> parameter, gradient, first, second;

  explicit Model(size_t size, std::mt19937& random) : first(size, 0.0F), second(size, 0.0F) {
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < size; ++i) {
      parameter.push_back(normal(random));
      gradient.push_back(normal(random));
    }
  }

  AdamTensor tensor() {
    return {.parameter = parameter.data(),
            .gradient = gradient.data(),
            .first = first.data(),
            .second = second.data(),
            .size = static_cast<int64_t>(parameter.size())};
  }
};

TEST(AdamKernel, IsTheFormulaForEveryEntryOfEveryTensor) {
  std::mt19937 random(1);
  const AdamRates rates = {
      .lr = 0.01, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.02};
  // More tensors than fit into a launch, some empty, some longer than a block.
  std::vector<Model> models;
  for (size_t i = 0; i < 70; ++i) models.emplace_back(i % 7 == 3 ? 0 : i * 97 % 5000, random);
  const std::vector<Model> before = models;
  std::vector<AdamTensor> tensors;
  for (Model& model : models) tensors.push_back(model.tensor());
  for (float step = 1; step <= 2; ++step) step_on_device(tensors, rates, &step, nullptr);

  for (size_t i = 0; i < models.size(); ++i) {
    for (size_t j = 0; j < before[i].parameter.size(); ++j) {
      double p = before[i].parameter[j], m = 0, v = 0;
      for (int step = 1; step <= 2; ++step) {
        const double g = before[i].gradient[j] + rates.weight_decay * p;
        m = rates.beta1 * m + (1 - rates.beta1) * g;
        v = rates.beta2 * v + (1 - rates.beta2) * g * g;
        const double root = std::sqrt(v / (1 - std::pow(rates.beta2, step)));
        p -= rates.lr * m / (1 - std::pow(rates.beta1, step)) / (root + rates.eps);
      }
      ASSERT_NEAR(models[i].parameter[j], p, 1e-5) << i << ' ' << j;
      ASSERT_NEAR(models[i].first[j], m, 1e-6) << i << ' ' << j;
      ASSERT_NEAR(models[i].second[j], v, 1e-6) << i << ' ' << j;
    }
  }
}

}  // namespace
}  // namespace aimle::experiments
