#include "experiments/engine/on_device.h"

#include <algorithm>

namespace aimle::experiments {

bool suit_kernels(at::TensorList tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) {
    return tensor.is_cuda() && tensor.scalar_type() == at::kFloat && tensor.is_contiguous();
  });
}

}  // namespace aimle::experiments
