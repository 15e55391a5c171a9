#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "aimle/torch/exact.h"
#include "aimle/torch/executor.h"

namespace aimle::ops {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<at::Tensor>;

/// What one call computes: the outputs that are defined.
struct Outputs {
  Tensor log_partition;
  Tensor marginals;
  Tensor v;
  Tensor covariance;
};

template <class T>
T* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<T>() : nullptr;
}

template <class T>
void evaluate_all(const Distribution& distribution, const SolverTensors& tensors,
                  const Outputs& outputs, Tensor& status) {
  const DistributionRows<T> rows{
      .count = status.numel(),
      .scores = tensors.scores.const_data_ptr<T>(),
      .mask = tensors.mask.defined() ? tensors.mask.const_data_ptr<bool>() : nullptr,
      .k = tensors.row_k.defined() ? tensors.row_k.const_data_ptr<int64_t>() : nullptr,
      .v = outputs.v.defined() ? outputs.v.const_data_ptr<T>() : nullptr,
      .status = reinterpret_cast<Status*>(status.mutable_data_ptr<uint8_t>()),
      .log_partition = data_or_null<T>(outputs.log_partition),
      .marginals = data_or_null<T>(outputs.marginals),
      .covariance = data_or_null<T>(outputs.covariance)};
  std::visit([&](const auto& solver) { evaluate(solver, rows, torch_threads()); }, distribution);
}

template <class T>
void sample_all(const Distribution& distribution, const SolverTensors& tensors, const Tensor& key,
                int64_t samples, Tensor& z, Tensor& status) {
  const Tensor halves = key.contiguous();
  const auto* words = halves.const_data_ptr<int64_t>();
  const SampleRows<T> rows{
      .count = status.numel(),
      .samples = samples,
      .scores = tensors.scores.const_data_ptr<T>(),
      .mask = tensors.mask.defined() ? tensors.mask.const_data_ptr<bool>() : nullptr,
      .k = tensors.row_k.defined() ? tensors.row_k.const_data_ptr<int64_t>() : nullptr,
      .key = {.seed = static_cast<uint64_t>(words[0]), .stream = static_cast<uint64_t>(words[1])},
      .status = reinterpret_cast<Status*>(status.mutable_data_ptr<uint8_t>()),
      .z = z.mutable_data_ptr<T>()};
  std::visit([&](const auto& solver) { sample(solver, rows, torch_threads()); }, distribution);
}

Tensor empty_status(const ExactInput& input) {
  return at::empty(input.rows.batch(), input.rows.scores.options().dtype(at::kByte));
}

void evaluate_input(const ExactInput& input, const SolverTensors& tensors, const Outputs& outputs) {
  Tensor status = empty_status(input);
  const Distribution distribution = make_distribution(input);
  if (tensors.scores.scalar_type() == at::kDouble) {
    evaluate_all<double>(distribution, tensors, outputs, status);
  } else {
    evaluate_all<float>(distribution, tensors, outputs, status);
  }
  raise_for_status(input.rows, status, input.check);
}

Tensor log_partition(const Tensor& scores, std::string_view solver, at::IntArrayRef solver_args,
                     const MaybeTensor& mask, const MaybeTensor& k, int64_t check) {
  const ExactInput input =
      exact_input("log_partition", scores, solver, solver_args, mask, k, check);
  const SolverTensors tensors = prepare(input.rows);
  const Tensor out = at::empty(input.rows.batch(), tensors.scores.options());
  evaluate_input(input, tensors, {.log_partition = out});
  return out.to(scores.scalar_type());
}

Tensor marginals(const Tensor& scores, std::string_view solver, at::IntArrayRef solver_args,
                 const MaybeTensor& mask, const MaybeTensor& k, int64_t check) {
  const ExactInput input = exact_input("marginals", scores, solver, solver_args, mask, k, check);
  const SolverTensors tensors = prepare(input.rows);
  const Tensor out = at::empty(scores.sizes(), tensors.scores.options());
  evaluate_input(input, tensors, {.marginals = out});
  return out.to(scores.scalar_type());
}

Tensor covariance(const Tensor& scores, const Tensor& v, std::string_view solver,
                  at::IntArrayRef solver_args, const MaybeTensor& mask, const MaybeTensor& k,
                  int64_t check) {
  const ExactInput input = exact_input("covariance", scores, solver, solver_args, mask, k, check);
  check_v(v, scores);
  const SolverTensors tensors = prepare(input.rows);
  const Tensor out = at::empty(scores.sizes(), tensors.scores.options());
  evaluate_input(input, tensors,
                 {.v = v.to(tensors.scores.scalar_type()).contiguous(), .covariance = out});
  return out.to(scores.scalar_type());
}

Tensor exact_sample(const Tensor& scores, const Tensor& key, c10::SymInt samples,
                    std::string_view solver, at::IntArrayRef solver_args, const MaybeTensor& mask,
                    const MaybeTensor& k, int64_t check) {
  const ExactInput input = exact_input("exact_sample", scores, solver, solver_args, mask, k, check);
  check_sample(key, scores, samples);
  const SolverTensors tensors = prepare(input.rows);
  Tensor z = at::empty_symint(sample_sizes(scores, samples), tensors.scores.options());
  Tensor status = empty_status(input);
  const Distribution distribution = make_distribution(input);
  if (z.scalar_type() == at::kDouble) {
    sample_all<double>(distribution, tensors, key, samples.expect_int(), z, status);
  } else {
    sample_all<float>(distribution, tensors, key, samples.expect_int(), z, status);
  }
  raise_for_status(input.rows, status, input.check);
  return z.to(scores.scalar_type());
}

TORCH_LIBRARY_IMPL(aimle, CPU, library) {
  library.impl("log_partition", log_partition);
  library.impl("marginals", marginals);
  library.impl("covariance", covariance);
  library.impl("exact_sample", exact_sample);
}

}  // namespace
}  // namespace aimle::ops
