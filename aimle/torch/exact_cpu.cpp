#include "aimle/torch/exact.h"
#include "aimle/torch/executor.h"
#include "aimle/torch/noise.h"

namespace aimle::ops {
namespace {

struct Cpu {
  template <class T>
  static void evaluate(const Distribution& distribution, const SolverTensors& tensors,
                       const ExactOutputs& outputs, const at::Tensor& status) {
    const DistributionRows<T> rows = distribution_rows<T>(tensors, outputs, status);
    std::visit([&](const auto& solver) { aimle::evaluate(solver, rows, torch_threads()); },
               distribution);
  }
  template <class T>
  static void sample(const Distribution& distribution, const SolverTensors& tensors,
                     const SampleOutputs& outputs, const at::Tensor& status) {
    SampleRows<T> rows = sample_rows_of<T>(tensors, outputs, status);
    rows.key = host_key(outputs.key);
    std::visit([&](const auto& solver) { aimle::sample(solver, rows, torch_threads()); },
               distribution);
  }
};

TORCH_LIBRARY_IMPL(aimle, CPU, library) { register_exact<Cpu>(library); }

}  // namespace
}  // namespace aimle::ops
