// What an experiment is, and what the engine wants to know of it. The engine (training_run.h) owns epochs,
// data order, noise keys, metrics, checkpoints and folders; the experiment owns its data, its model
// and its loss. docs/adding_an_experiment.md builds one step by step.
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

/// One step's share of the data. Tensors live on the run's device. Where several processes train
/// together (processes.h) it is this process's share of the step's batch.
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

/// Zero-dimensional tensors with their names, averaged over the epoch by the engine without reading
/// them step by step. One is called "loss".
using Scalars = std::vector<std::pair<std::string, at::Tensor>>;

using Metrics = std::vector<std::pair<std::string, double>>;

struct Picture {
  std::string name;
  at::Tensor pixels;  // uint8 [height, width], or [height, width, 3]
};

/// A model in training. Every tensor that a step changes is in `model` or `state`: the engine saves
/// them, and restores them in place. Randomness comes from keys alone, so that a step is a function
/// of those tensors and the batch.
struct Training {
  std::map<std::string, at::Tensor> model;  // parameters and buffers: best.pt has these
  std::map<std::string, at::Tensor> state;  // optimiser, estimator
  int64_t examples = 0;                     // of the training split
  bool shuffle = true;                      // the last batch of a pass may be smaller
  int64_t epoch_steps = 0;      // 0: an epoch is a pass over the examples; else so many steps
  bool evaluate_first = false;  // measure the untrained model too, as epoch 0

  std::function<Scalars(const Batch&)> step;
  /// The estimator whose state the steps move, if one does: several processes move it together.
  std::shared_ptr<Estimator> estimator;
  /// What the host decides before a step (a temperature, a learning rate): true when it has
  /// changed.
  std::function<bool(int64_t step)> schedule = [](int64_t) { return false; };
  /// At an epoch's end. Names as in "test_loss", "val_loss". Long ones call stop_if_interrupted
  /// between their batches, and leave model and state as they were when it throws.
  std::function<Metrics(const at::Tensor& key)> evaluate;
  /// What the progress line and metrics.jsonl show of the present state: {"alpha": ...}.
  std::function<Scalars()> watch = [] { return Scalars(); };
  std::function<std::vector<Picture>(const at::Tensor& key)> pictures = [](const at::Tensor&) {
    return std::vector<Picture>();
  };
  /// A few examples with what the model makes of them, for reports to draw: exhibits.json.
  std::function<Json(const at::Tensor& key)> exhibits = [](const at::Tensor&) { return Json(); };
};

/// A new model on data that is there already; several may train side by side.
using Start = std::function<Training(const Settings&)>;

struct Experiment {
  std::string name;
  std::string summary;
  std::vector<Option> options;  // its own; the engine adds those of engine_options()
  std::vector<Preset> presets;
  /// Other defaults for options of the engine.
  std::vector<std::pair<std::string, Json>> defaults;
  std::string select = "val_loss";     // the metric that chooses best.pt and a grid's winner
  std::vector<std::string> maximised;  // metrics of which more is better
  /// Reads or makes the data, once for all runs of a command. Settings of options with `of_data`
  /// are the same for all of them.
  std::function<Start(const Settings&)> load;
};

/// Options that every experiment has: epochs, batch, lr, method and the settings of its estimator …
std::vector<Option> engine_options();
/// The engine's options, with this experiment's defaults, and then its own.
Settings default_settings(const Experiment& experiment);

}  // namespace aimle::experiments
