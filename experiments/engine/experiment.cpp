#include "experiments/engine/experiment.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "experiments/engine/estimator_options.h"

namespace aimle::experiments {

at::Tensor Batch::noise_key(int64_t instances) const {
  return first == 0 ? key : at::cat({key, at::full({1}, first * instances, key.options())});
}

at::Tensor Batch::mean(const at::Tensor& losses) const {
  const at::Tensor own = losses.mean();
  return share == 1.0 ? own : own * share;
}

std::vector<Option> engine_options() {
  std::vector<Option> options = {
      {.name = "epochs",
       .value = 10,
       .help = "Passes over the training data",
       .group = "Training",
       .low = 1,
       .high = 1e6},
      {.name = "batch",
       .value = 100,
       .help = "Examples a step",
       .group = "Training",
       .low = 1,
       .high = 1e9},
      {.name = "lr", .value = 1e-3, .help = "Learning rate of Adam", .group = "Training", .low = 0},
      {.name = "seed",
       .value = 0,
       .help = "Decides initial values, data order and noise",
       .group = "Training",
       .low = 0},
      {.name = "device",
       .value = "cpu",
       .help = "Where tensors live",
       .group = "Training",
       .choices = {"cpu", "cuda"},
       .of_data = true},
      {.name = "graph",
       .value = true,
       .help = "On a GPU: record the step as a CUDA graph and replay it",
       .group = "Training"},
      {.name = "tf32",
       .value = false,
       .help = "On a GPU: multiply matrices in TF32, faster and less precise",
       .group = "Training",
       .of_data = true},
      {.name = "data",
       .value = "",
       .help = "Folder of the data set; empty: made by the program",
       .group = "Data",
       .of_data = true},
      {.name = "checkpoint_seconds",
       .value = 30.0,
       .help = "Time between checkpoints",
       .group = "Training",
       .low = 0},
      {.name = "checkpoint_steps",
       .value = 0,
       .help = "Steps between checkpoints instead of a time; 0: by time",
       .group = "Training",
       .low = 0},
  };
  for (Option& option : estimator_options()) options.push_back(std::move(option));
  return options;
}

Settings default_settings(const Experiment& experiment) {
  std::vector<Option> options = engine_options();
  for (const auto& [name, value] : experiment.defaults) {
    for (Option& option : options) {
      if (option.name == name) option.value = option.check(value);
    }
  }
  for (const Option& own : experiment.options) {
    const auto common = std::find_if(options.begin(), options.end(),
                                     [&](const Option& option) { return option.name == own.name; });
    if (common == options.end()) {
      options.push_back(own);
    } else {
      *common = own;
    }
  }
  return Settings(std::move(options));
}

}  // namespace aimle::experiments
