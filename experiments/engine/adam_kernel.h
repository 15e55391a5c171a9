// Adam's step (adam.h) for all tensors of a model in one kernel.
//
// PyTorch's fused kernel gives a block 65,536 entries, so that a small model leaves most of a GPU
// idle. Here a block takes 2,048.
#pragma once

#include <cstdint>
#include <vector>

namespace aimle::experiments {

/// One tensor's entries: float32, contiguous, on the current device.
struct AdamTensor {
  float* parameter;
  const float* gradient;
  float* first;
  float* second;
  int64_t size;
};

struct AdamRates {
  double lr, beta1, beta2, eps, weight_decay;
};

/// Whether the program was built with GPU kernels.
bool has_adam_kernel();

/// Starts the step on a stream. `steps`: number of steps including this one, on the device.
void step_on_device(const std::vector<AdamTensor>& tensors, const AdamRates& rates,
                    const float* steps, void* stream);

}  // namespace aimle::experiments
