// What the experiments' own GPU kernels need of tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include "aimle/torch/tensor/device_context.h"  // the stream

namespace aimle::experiments {

/// Whether the kernels can take these tensors: float32, contiguous, on a GPU.
bool suit_kernels(at::TensorList tensors);

}  // namespace aimle::experiments
