#include "aimle/cuda/kernels.h"
#include "aimle/torch/exact/exact_ops.h"
#include "aimle/torch/tensor/device_context.h"
#include "aimle/torch/tensor/value_error.h"

namespace aimle::ops {
namespace {

struct Cuda {
  template <class T>
  static void evaluate(const ExactInput& input, const SolverTensors& tensors,
                       const ExactOutputs& outputs, const at::Tensor& status) {
    const DeviceContext context(tensors.scores);
    const Solver solver = fit(input);
    with_value_errors([&] {
      cuda::kernels_of(solver).evaluate_rows(solver, distribution_rows<T>(tensors, outputs, status),
                                             context.get());
    });
  }
  template <class T>
  static void sample(const ExactInput& input, const SolverTensors& tensors,
                     const SampleOutputs& outputs, const at::Tensor& status) {
    const DeviceContext context(tensors.scores);
    const Solver solver = fit(input);
    with_value_errors([&] {
      cuda::kernels_of(solver).sample_rows(solver, sample_rows_of<T>(tensors, outputs, status),
                                           device_key(outputs.key), context.get());
    });
  }
};

TORCH_LIBRARY_IMPL(aimle, CUDA, library) { register_exact<Computed<Cuda>>(library); }

}  // namespace
}  // namespace aimle::ops
