// The checkpoints of a run: what they contain, when one is due, and how a run continues from one.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/engine/checkpoint.h"
#include "experiments/engine/step_sums.h"
#include "experiments/engine/training_run.h"

namespace aimle::experiments {

/// The position of a run.
struct Position {
  int64_t epoch = 0;          // complete ones
  int64_t step = 0;           // of the current epoch
  double seconds = 0;         // of the current epoch, without evaluation
  double engine_seconds = 0;  // of these: order, keys, sums, checkpoints
};

/// What a checkpoint has besides the tensors of the training.
struct RunState {
  Position position;
  StepSums sums;
  std::vector<Json> metrics;  // a line per epoch
};

/// The position in the folder's checkpoint, the beginning if there is none.
Position saved_position(const RunFolder& folder);

class SavedRun {
 public:
  /// Both must outlive it.
  SavedRun(const Run& run, const Training& training) : run_(run), training_(training) {}

  /// Continues from the folder's checkpoint, if there is one. Throws Failure if it does not fit the
  /// settings, and repairs the metrics in the folder.
  void resume(RunState& state, at::Device device);

  /// Whether the settings ask for a checkpoint after this step of an epoch, or at the end of one.
  bool is_due(int64_t step) const;
  bool is_due() const;

  /// With the metrics and the best model, before the checkpoint that includes their epochs: flushing
  /// files to disk at every epoch would take as long as a short epoch.
  void save(const RunState& state);
  /// The present model is the best one so far, to be saved with the next checkpoint.
  void keep_best(int64_t epoch);
  /// Saves it now, if it is not saved yet.
  void save_best();

 private:
  void check_settings(const Checkpoint& checkpoint) const;
  void use_previous(const std::string& fault, const Position& position) const;
  std::vector<Json> restored_metrics(const std::string& saved, const Position& position) const;

  const Run& run_;
  const Training& training_;
  std::chrono::steady_clock::time_point saved_ = std::chrono::steady_clock::now();
  std::optional<Checkpoint> best_;  // not saved yet
  size_t saved_lines_ = 0;          // of the metrics
};

}  // namespace aimle::experiments
