// What the number of samples S means for a step, in every experiment.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "experiments/engine/randomness.h"
#include "experiments/registry.h"

namespace aimle::experiments {
namespace {

struct Small {
  std::string experiment;
  std::map<std::string, std::string> values;
  std::string scorer;  // names of the parameters that make theta begin with it
};

const std::vector<Small>& small_experiments() {
  static const std::vector<Small> all = {
      {.experiment = "dvae",
       .values = {{"examples", "60"}, {"test_examples", "10"}, {"validation", "10"}},
       .scorer = "encoder"},
      {.experiment = "l2x",
       .values = {{"examples", "60"},
                  {"heldout", "20"},
                  {"annotated", "10"},
                  {"planted", "4"},
                  {"k", "4"},
                  {"dimensions", "8"}},
       .scorer = "selector"},
      {.experiment = "nri",
       .values =
           {{"examples", "60"}, {"test_examples", "10"}, {"validation", "10"}, {"hidden", "8"}},
       .scorer = "encoder"},
      {.experiment = "warcraft",
       .values = {{"examples", "30"}, {"test_examples", "5"}, {"validation", "5"}, {"cells", "6"}},
       .scorer = ""},
  };
  return all;
}

/// Gradients after the first step of imle with so many samples, all of them alike: no noise.
std::map<std::string, at::Tensor> first_gradients(const Small& small, int64_t samples) {
  const Experiment& chosen = experiment(small.experiment);
  Settings settings = default_settings(chosen);
  std::map<std::string, std::string> values = small.values;
  values.insert({{"method", "imle"}, {"noise", "none"}, {"nb_samples", std::to_string(samples)}});
  for (const auto& [name, value] : values) settings.set(name, value, Origin::kUser);
  at::manual_seed(1);
  const Training training = chosen.load(settings)(settings);
  training.step({.rows = at::arange(20),
                 .key = noise_keys(0, Purpose::kTrain, 0, 1, at::kCPU)[0],
                 .step = 0});
  std::map<std::string, at::Tensor> result;
  for (const auto& [name, tensor] : training.model) {
    const bool makes_theta = name.rfind(small.scorer, 0) == 0;
    if (makes_theta && tensor.grad().defined()) result[name] = tensor.grad().clone();
  }
  return result;
}

// A fixed lambda is a step along the gradient of one sample's loss. If the mean over S samples were
// taken before the layer, that gradient, and with it the step, would be S times smaller.
TEST(Samples, AFixedLambdaMeansTheSameForAnyNumber) {
  at::set_num_threads(1);
  for (const Small& small : small_experiments()) {
    SCOPED_TRACE(small.experiment);
    const auto one = first_gradients(small, 1), four = first_gradients(small, 4);
    ASSERT_FALSE(one.empty());
    double norm = 0;
    for (const auto& [name, gradient] : one) {
      norm += gradient.norm().item<double>();
      // The sum of four float32 gradients and a quarter of it: some roundings apart.
      const double size = gradient.abs().max().item<double>();
      EXPECT_LE((gradient - four.at(name)).abs().max().item<double>(), 1e-4 * size + 1e-9) << name;
    }
    EXPECT_GT(norm, 0);
  }
}

}  // namespace
}  // namespace aimle::experiments
