#include "aimle/torch/noise/noise_ops.h"
#include "aimle/torch/tensor/executor.h"

namespace aimle::ops {
namespace {

struct Cpu {
  static at::Tensor fill(NoiseKind kind, const at::Tensor& key, const NoiseShape& shape,
                         const std::optional<at::Tensor>& table) {
    const at::Tensor values = table ? table->contiguous() : at::Tensor();
    const NoiseSource source{.kind = kind,
                             .table = table ? values.const_data_ptr<float>() : nullptr};
    at::Tensor out = shape.empty(key);
    aimle::fill(source, host_key(key.contiguous()), shape.rows(), out.mutable_data_ptr<float>(),
                torch_threads());
    return out;
  }
};

TORCH_LIBRARY_IMPL(aimle, CPU, library) { register_noise<Cpu>(library); }

}  // namespace
}  // namespace aimle::ops
