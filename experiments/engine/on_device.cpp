#include "experiments/engine/on_device.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

namespace aimle::experiments {

bool suit_kernels(at::TensorList tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) {
    return tensor.is_cuda() && tensor.scalar_type() == at::kFloat && tensor.is_contiguous();
  });
}

void* stream_of(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle();
}

}  // namespace aimle::experiments
