// The interface of experiments. The engine (training_run.h) handles epochs, data order, noise keys,
// metrics, checkpoints and folders; the experiment provides its data, its model and its loss.
// docs/contributing/adding_an_experiment.md builds one step by step.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiments/engine/options.h"

namespace aimle {
class Estimator;
}

namespace aimle::experiments {

/// The data of one step. Tensors are on the run's device. If several processes train together
/// (processes.h), it is this process's share of the step's batch.
struct Batch {
  at::Tensor rows;     // int64 [B]: which training examples
  at::Tensor key;      // int64 [2]: for all noise of this step, a pure function of (seed, step)
  int64_t step = 0;    // since the run began
  int64_t first = 0;   // the place of the first of these rows in the whole batch
  double share = 1.0;  // of the whole batch

  /// The key of noise for `instances` instances an example, numbered as in the whole batch.
  at::Tensor noise_key(int64_t instances = 1) const;
  /// The part of these examples in the whole batch's mean: what backward starts from.
  at::Tensor mean(const at::Tensor& losses) const;
};

/// Named zero-dimensional tensors. The engine averages them over the epoch without reading them at
/// every step. One of them is "loss".
using Scalars = std::vector<std::pair<std::string, at::Tensor>>;

using Metrics = std::vector<std::pair<std::string, double>>;

struct Picture {
  std::string name;
  at::Tensor pixels;  // uint8 [height, width], or [height, width, 3]
};

/// A model in training. Every tensor that a step changes is in `model` or `state`: the engine saves
/// them, and restores them in place. Randomness comes only from keys, so that a step is a function
/// of those tensors and the batch.
struct Training {
  std::map<std::string, at::Tensor> model;  // parameters and buffers, which best.pt contains
  std::map<std::string, at::Tensor> state;  // optimiser, estimator
  int64_t examples = 0;                     // of the training split
  bool shuffle = true;                      // the last batch of a pass may be smaller
  int64_t epoch_steps = 0;                  // steps of an epoch; 0: a pass over the examples
  bool evaluate_first = false;              // also evaluate the untrained model, as epoch 0

  std::function<Scalars(const Batch&)> step;
  /// The estimator whose state the steps update, if any: several processes update it together.
  std::shared_ptr<Estimator> estimator;
  /// Called before a step, for settings computed on the host (a temperature, a learning rate);
  /// returns true if they have changed.
  std::function<bool(int64_t step)> schedule = [](int64_t) { return false; };
  /// Called at the end of an epoch. Names as in "test_loss", "val_loss". Long evaluations call
  /// stop_if_interrupted between their batches, and leave model and state unchanged if it throws.
  std::function<Metrics(const at::Tensor& key)> evaluate;
  /// Values of the current state for the progress line and metrics.jsonl: {"alpha": ...}.
  std::function<Scalars()> watch = [] { return Scalars(); };
  std::function<std::vector<Picture>(const at::Tensor& key)> pictures = [](const at::Tensor&) {
    return std::vector<Picture>();
  };
  /// A few examples with the model's output, for reports to draw: exhibits.json.
  std::function<Json(const at::Tensor& key)> exhibits = [](const at::Tensor&) { return Json(); };
};

/// A new model on data that is already loaded; several may train in parallel.
using Start = std::function<Training(const Settings&)>;

struct Experiment {
  std::string name;
  std::string summary;
  std::vector<Option> options;  // its own; the engine adds those of engine_options()
  std::vector<Preset> presets;
  /// Overrides of defaults of the engine's options.
  std::vector<std::pair<std::string, Json>> defaults;
  std::string select = "val_loss";     // the metric that selects best.pt and the best cell
  std::vector<std::string> maximised;  // metrics for which higher is better
  /// Reads or generates the data, once for all runs of a command. Settings of options with
  /// `of_data` are the same for all of them.
  std::function<Start(const Settings&)> load;
};

/// Options that every experiment has: epochs, batch, lr, method and the settings of its estimator …
std::vector<Option> engine_options();
/// The engine's options, with this experiment's defaults, followed by its own.
Settings default_settings(const Experiment& experiment);

}  // namespace aimle::experiments
