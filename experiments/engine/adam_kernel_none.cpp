#include <stdexcept>

#include "experiments/engine/adam_kernel.h"

namespace aimle::experiments {

bool has_adam_kernel() { return false; }

void step_on_device(const std::vector<AdamTensor>&, const AdamRates&, const float*, void*) {
  throw std::logic_error("[aimle::adam] built without GPU kernels");
}

}  // namespace aimle::experiments
