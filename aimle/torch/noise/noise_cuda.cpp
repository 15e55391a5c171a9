#include "aimle/torch/noise/noise_ops.h"
#include "aimle/torch/tensor/device_context.h"

namespace aimle::ops {
namespace {

struct Cuda {
  static at::Tensor fill(NoiseKind kind, const at::Tensor& key, const NoiseShape& shape,
                         const std::optional<at::Tensor>& table) {
    const DeviceContext context(key);
    const at::Tensor halves = key.contiguous();
    at::Tensor values = table ? table->contiguous() : at::Tensor();
    // Kernels read four floats at once.
    if (table && reinterpret_cast<uintptr_t>(values.const_data_ptr()) % 16 != 0) {
      values = values.clone();
    }
    at::Tensor out = shape.empty(key);
    cuda::fill_noise({.kind = kind, .table = table ? values.const_data_ptr<float>() : nullptr},
                     device_key(halves), shape.rows(), out.mutable_data_ptr<float>(),
                     context.get());
    return out;
  }
};

TORCH_LIBRARY_IMPL(aimle, CUDA, library) { register_noise<Cuda>(library); }

}  // namespace
}  // namespace aimle::ops
