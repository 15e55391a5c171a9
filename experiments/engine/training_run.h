// One run: epochs of steps, metrics, checkpoints. A run killed at any moment continues from its
// last checkpoint and ends with the same bits (on the CPU) as one that was never stopped: a step is
// a function of the tensors saved and of (seed, step), and the checkpoint holds the sums of the
// epoch so far as well.
//
// Several processes (processes.h) do the same steps, each with its share of the batch, and hold the
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
  std::string label;         // shown beside the progress, where there are several
  std::string select;        // the metric by which the best epoch is chosen
  bool must_select = false;  // it may not be missing: the user named it, or a grid depends on it
};

/// Whether the parts of a run that was resumed may differ in this setting.
bool may_change(const std::string& setting);

/// 1 if less is better, -1 if more is.
double direction(const Experiment& experiment, const std::string& metric);

/// The epoch with the best value of `select`; train_loss where the metrics have no such value.
const Json& best_epoch(const Run& run, const std::vector<Json>& metrics);

/// Steps that are still to be done, for a progress bar over several runs.
int64_t steps_left(const Run& run, const Training& training);

/// Trains from the folder's checkpoint, or from the beginning if there is none, and returns the
/// metrics of all epochs. Throws Stopped after a signal, when all is saved, and Failure for a loss
/// that is not finite, with the last good checkpoint kept.
std::vector<Json> train(const Run& run, Training training, Progress& progress);

}  // namespace aimle::experiments
