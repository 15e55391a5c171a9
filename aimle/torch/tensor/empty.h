// Allocates tensors without the dispatcher, whose ops take longer than a small solve.
#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>

namespace aimle::ops {

/// Like at::empty, on a CPU or GPU.
inline at::Tensor empty_on(c10::Device device, at::IntArrayRef sizes, at::ScalarType type) {
  const c10::DeviceGuard guard(device);
  const c10::DispatchKeySet keys(device.is_cuda() ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU);
  return at::Tensor(
      at::detail::empty_generic(sizes, c10::GetAllocator(device.type()), keys, type, std::nullopt));
}

}  // namespace aimle::ops
