// Which examples are in which step. Each pass over the examples has its own order, and its last
// batch may be smaller. An epoch is a pass, or a fixed number of steps.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace aimle::experiments {

class Batches {
 public:
  /// epoch_steps = 0: an epoch is a pass.
  Batches(int64_t seed, int64_t examples, int64_t batch, bool shuffle, int64_t epoch_steps,
          at::Device device);

  int64_t epoch_steps() const { return epoch_steps_; }
  /// The examples of a step, counted from the beginning of the run: int64 [B].
  at::Tensor rows(int64_t step);
  /// The number of examples in the steps [first, last).
  int64_t examples_in(int64_t first, int64_t last) const { return before(last) - before(first); }

 private:
  int64_t before(int64_t step) const;

  int64_t seed_, examples_, batch_;
  bool shuffle_;
  int64_t pass_steps_, epoch_steps_;
  at::Device device_;
  int64_t pass_ = -1;
  at::Tensor order_;  // of this pass
};

}  // namespace aimle::experiments
