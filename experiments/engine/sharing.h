// How several processes (processes.h) share the steps of a run. For one process every function gives
// back what it was given.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "experiments/engine/experiment.h"

namespace aimle::experiments {

/// Misuse if several processes cannot share this run's batches.
void check_sharing(const Settings& settings, const Training& training);

class Sharing {
 public:
  /// The estimator whose state moves by the counts of all processes; may be null.
  explicit Sharing(std::shared_ptr<Estimator> estimator);

  /// This process's share of a batch.
  static Batch own_part(Batch batch);

  /// After a step: its sums over all processes. One message with the counts that move the
  /// estimator's state, and with how many processes were asked to stop.
  at::Tensor sum(const at::Tensor& own);

  /// The signal after which all processes stop at this step; 0 if they go on.
  int signal_at_step(int64_t step) const;

 private:
  std::shared_ptr<Estimator> estimator_;
  at::Tensor asked_to_stop_;  // how many processes were, at the last step
};

}  // namespace aimle::experiments
