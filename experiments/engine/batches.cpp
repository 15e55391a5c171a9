#include "experiments/engine/batches.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "experiments/engine/randomness.h"

namespace aimle::experiments {

Batches::Batches(int64_t seed, int64_t examples, int64_t batch, bool shuffle, int64_t epoch_steps,
                 at::Device device)
    : seed_(seed),
      examples_(examples),
      batch_(batch),
      shuffle_(shuffle),
      pass_steps_((examples + batch - 1) / batch),
      epoch_steps_(epoch_steps > 0 ? epoch_steps : pass_steps_),
      device_(device) {}

at::Tensor Batches::rows(int64_t step) {
  if (const int64_t pass = step / pass_steps_; pass != pass_) {
    pass_ = pass;
    order_ = shuffle_ ? epoch_order(seed_, pass, examples_, device_)
                      : at::arange(examples_, at::device(device_).dtype(at::kLong));
  }
  const int64_t first = step % pass_steps_ * batch_;
  return order_.narrow(0, first, std::min(batch_, examples_ - first));
}

int64_t Batches::before(int64_t step) const {
  return step / pass_steps_ * examples_ + step % pass_steps_ * batch_;
}

}  // namespace aimle::experiments
