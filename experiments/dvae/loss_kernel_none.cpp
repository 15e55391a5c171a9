#include "experiments/dvae/loss_kernel.h"

#include <stdexcept>

namespace aimle::experiments::dvae {
namespace {

[[noreturn]] void refuse() { throw std::logic_error("[aimle::dvae] built without GPU kernels"); }

}  // namespace

bool has_loss_kernel() { return false; }

void losses_on_device(const LossInputs&, float*, float*, void*) { refuse(); }

void sum_losses_on_device(const LossInputs&, const float*, const float*, const LossWeights&,
                          const LossOutputs&, void*) {
  refuse();
}

void loss_gradients_on_device(const LossInputs&, const LossWeights&, const float*, float*, float*,
                              void*) {
  refuse();
}

}  // namespace aimle::experiments::dvae
