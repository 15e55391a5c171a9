#include "aimle/torch/exact.h"
#include "aimle/torch/executor.h"
#include "aimle/torch/noise.h"

namespace aimle::ops {
namespace {

template <class T>
void sample_all(const Distribution& distribution, const SolverTensors& tensors,
                const SampleOutputs& outputs, const at::Tensor& status) {
  SampleRows<T> rows = sample_rows_of<T>(tensors, outputs, status);
  rows.key = host_key(outputs.key);
  std::visit([&](const auto& solver) { sample(solver, rows, torch_threads()); }, distribution);
}

template <class T>
void evaluate_all(const Distribution& distribution, const SolverTensors& tensors,
                  const ExactOutputs& outputs, const at::Tensor& status) {
  const DistributionRows<T> rows = distribution_rows<T>(tensors, outputs, status);
  std::visit([&](const auto& solver) { evaluate(solver, rows, torch_threads()); }, distribution);
}

struct Cpu {
  static void evaluate(const Distribution& distribution, const SolverTensors& tensors,
                       const ExactOutputs& outputs, const at::Tensor& status) {
    if (tensors.scores.scalar_type() == at::kDouble) {
      evaluate_all<double>(distribution, tensors, outputs, status);
    } else {
      evaluate_all<float>(distribution, tensors, outputs, status);
    }
  }
  static void sample(const Distribution& distribution, const SolverTensors& tensors,
                     const SampleOutputs& outputs, const at::Tensor& status) {
    if (tensors.scores.scalar_type() == at::kDouble) {
      sample_all<double>(distribution, tensors, outputs, status);
    } else {
      sample_all<float>(distribution, tensors, outputs, status);
    }
  }
};

TORCH_LIBRARY_IMPL(aimle, CPU, library) { register_exact<Cpu>(library); }

}  // namespace
}  // namespace aimle::ops
