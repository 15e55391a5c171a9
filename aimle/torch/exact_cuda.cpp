#include "aimle/cuda/exact.h"

#include "aimle/torch/device_context.h"
#include "aimle/torch/exact.h"
#include "aimle/torch/value_error.h"

namespace aimle::ops {
namespace {

struct Cuda {
  template <class T>
  static void evaluate(const Distribution& distribution, const SolverTensors& tensors,
                       const ExactOutputs& outputs, const at::Tensor& status) {
    const DeviceContext context(tensors.scores);
    const DistributionRows<T> rows = distribution_rows<T>(tensors, outputs, status);
    std::visit(
        [&](const auto& solver) {
          with_value_errors([&] { cuda::evaluate_rows(solver, rows, context.get()); });
        },
        distribution);
  }
  template <class T>
  static void sample(const Distribution& distribution, const SolverTensors& tensors,
                     const SampleOutputs& outputs, const at::Tensor& status) {
    const DeviceContext context(tensors.scores);
    const SampleRows<T> rows = sample_rows_of<T>(tensors, outputs, status);
    const cuda::DeviceKey key = device_key(outputs.key);
    std::visit(
        [&](const auto& solver) {
          with_value_errors([&] { cuda::sample_rows(solver, rows, key, context.get()); });
        },
        distribution);
  }
};

TORCH_LIBRARY_IMPL(aimle, CUDA, library) { register_exact<Cuda>(library); }

}  // namespace
}  // namespace aimle::ops
