#include "experiments/engine/dense_kernel.h"

#include <stdexcept>

namespace aimle::experiments {

bool has_dense_kernel() { return false; }

int64_t layer_gradient_scratch(int64_t, int64_t) { return 0; }

void pass_on_device(const LayerGradient&, Activation, void*) {
  throw std::logic_error("[aimle::dense] built without GPU kernels");
}

}  // namespace aimle::experiments
