// What the experiments' own GPU kernels need of tensors.
#pragma once

#include <ATen/core/Tensor.h>

namespace aimle::experiments {

/// Whether the kernels can take these tensors: float32, contiguous, on a GPU.
bool suit_kernels(at::TensorList tensors);

/// The stream that PyTorch uses now on this device, as a CUDA stream.
void* stream_of(c10::Device device);

}  // namespace aimle::experiments
