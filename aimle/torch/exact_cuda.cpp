#include "aimle/cuda/exact.h"

#include "aimle/torch/device_context.h"
#include "aimle/torch/exact.h"
#include "aimle/torch/value_error.h"

namespace aimle::ops {
namespace {

template <class T>
void evaluate_all(const Distribution& distribution, const SolverTensors& tensors,
                  const ExactOutputs& outputs, const at::Tensor& status) {
  const DeviceContext context(tensors.scores);
  const DistributionRows<T> rows = distribution_rows<T>(tensors, outputs, status);
  std::visit(
      [&](const auto& solver) {
        with_value_errors([&] { cuda::evaluate_rows(solver, rows, context.get()); });
      },
      distribution);
}

/// Spanning trees take their edges one after the other, which is no work for a GPU: the rows are
/// sampled on the CPU, and the caller waits.
void sample_trees(const SpanningTree& trees, const SolverTensors& tensors,
                  const SampleOutputs& outputs, const at::Tensor& status) {
  const SolverTensors host{.scores = tensors.scores.cpu(),
                           .mask = tensors.mask.defined() ? tensors.mask.cpu() : at::Tensor()};
  const SampleOutputs sampled{.key = outputs.key.cpu(),
                              .samples = outputs.samples,
                              .z = at::empty(outputs.z.sizes(), host.scores.options())};
  const at::Tensor outcome = at::empty(status.sizes(), host.scores.options().dtype(at::kByte));
  sample_on_cpu(trees, host, sampled, outcome);
  outputs.z.copy_(sampled.z);
  status.copy_(outcome);
}

template <class T>
void sample_all(const Distribution& distribution, const SolverTensors& tensors,
                const SampleOutputs& outputs, const at::Tensor& status) {
  if (const auto* trees = std::get_if<SpanningTree>(&distribution)) {
    return sample_trees(*trees, tensors, outputs, status);
  }
  const DeviceContext context(tensors.scores);
  const SampleRows<T> rows = sample_rows_of<T>(tensors, outputs, status);
  const cuda::DeviceKey key = device_key(outputs.key);
  if (const auto* entries = std::get_if<Argmax>(&distribution)) {
    cuda::sample_rows(*entries, rows, key, context.get());
  } else {
    cuda::sample_rows(std::get<TopK>(distribution), rows, key, context.get());
  }
}

struct Cuda {
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

TORCH_LIBRARY_IMPL(aimle, CUDA, library) { register_exact<Cuda>(library); }

}  // namespace
}  // namespace aimle::ops
