// The sums of a training run's scalars (loss, accuracy, ...) over the steps of an epoch, and over the
// last step alone. They stay on the device until they are read.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/engine/checkpoint.h"
#include "experiments/engine/experiment.h"
#include "experiments/engine/sharing.h"

namespace aimle::experiments {

class StepSums {
 public:
  using Values = std::vector<std::pair<std::string, double>>;

  /// From now on the sums of the last step are kept too.
  void keep_last_step() { keeps_last_ = true; }

  /// Adds the scalars of a step, means over `weight` examples, summed over all processes.
  void add(const Scalars& scalars, int64_t weight, Sharing& sharing);
  /// For the next epoch.
  void clear() { epoch_.zero_(); }

  /// By name. These wait for a GPU.
  Values of_epoch() const { return named(epoch_); }
  Values of_last_step() const { return named(last_); }
  /// Of the epoch; nothing if no step had such a scalar.
  std::optional<double> of_epoch(const std::string& name) const;

  /// The sums of an epoch that is not complete; without them, only the names.
  void save(Checkpoint& checkpoint, bool with_sums) const;
  void restore(const Checkpoint& checkpoint, at::Device device);
  /// Takes the names, and later the sums, of the first process.
  void share_names();
  void share_sums(at::Device device);

 private:
  Values named(const at::Tensor& sums) const;

  std::vector<std::string> names_;
  at::Tensor epoch_;
  at::Tensor last_;
  bool keeps_last_ = false;
};

}  // namespace aimle::experiments
