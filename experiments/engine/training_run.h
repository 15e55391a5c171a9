// One run: epochs of steps, metrics, checkpoints. A run that is killed at any moment continues from
// its last checkpoint and ends with the same bits (on the CPU) as an uninterrupted one: a step is a
// function of the saved tensors and of (seed, step), and the checkpoint includes the sums of the
// epoch so far.
//
// Several processes (processes.h) do the same steps, each with its share of the batch, and have the
// same tensors after each of them. The first one reads and writes the folder.
#pragma once

#include <string>
#include <vector>

#include "experiments/engine/experiment.h"
#include "experiments/engine/run_folder.h"
#include "experiments/process/progress.h"

namespace aimle::experiments {

struct Run {
  const Experiment* experiment = nullptr;
  Settings settings;
  RunFolder folder;
  std::string label;         // shown next to the progress if there are several runs
  std::string select;        // the metric that selects the best epoch
  bool must_select = false;  // it must exist: the user named it, or a grid depends on it
};

/// Whether this setting may change when a run is resumed.
bool may_change(const std::string& setting);

/// 1 if lower is better, -1 if higher is better.
double direction(const Experiment& experiment, const std::string& metric);

/// The epoch with the best value of `select`; uses train_loss if the metrics have no such value.
const Json& best_epoch(const Run& run, const std::vector<Json>& metrics);

/// The number of remaining steps, for a progress bar over several runs.
int64_t steps_left(const Run& run, const Training& training);

/// Trains from the folder's checkpoint, or from the beginning if there is none, and returns the
/// metrics of all epochs. Throws Stopped after a signal, once everything is saved, and Failure for
/// a loss that is not finite, with the last good checkpoint kept.
std::vector<Json> train(const Run& run, Training training, Progress& progress);

}  // namespace aimle::experiments
