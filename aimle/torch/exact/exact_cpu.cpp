#include "aimle/torch/exact/exact_ops.h"
#include "aimle/torch/noise/noise_ops.h"
#include "aimle/torch/tensor/executor.h"

namespace aimle::ops {
namespace {

struct Cpu {
  template <class T>
  static void evaluate(const ExactInput& input, const SolverTensors& tensors,
                       const ExactOutputs& outputs, const at::Tensor& status) {
    input.solver->kind().exact->evaluate(fit(input), distribution_rows<T>(tensors, outputs, status),
                                         torch_threads());
  }
  template <class T>
  static void sample(const ExactInput& input, const SolverTensors& tensors,
                     const SampleOutputs& outputs, const at::Tensor& status) {
    SampleRows<T> rows = sample_rows_of<T>(tensors, outputs, status);
    rows.key = host_key(outputs.key);
    input.solver->kind().exact->sample(fit(input), rows, torch_threads());
  }
};

TORCH_LIBRARY_IMPL(aimle, CPU, library) { register_exact<Computed<Cpu>>(library); }

}  // namespace
}  // namespace aimle::ops
