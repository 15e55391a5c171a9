// The ops of exact distributions: checks and results shared by all devices.
//
//   log_partition  [*batch]                 its gradient: the marginals
//   marginals      [*batch, *instance]      their gradient: covariance, with v = dy
//   covariance     [*batch, *instance]      Cov(z) v; differentiable in v, not in the scores
//   exact_sample   [*batch, samples, *instance]   no gradient
//
// scores, solver, mask, row_data and check are those of `solve`. exact_autograd.cpp differentiates;
// the devices compute, each a struct in its own file (exact_cpu.cpp, exact_cuda.cpp; exact_meta.cpp
// only has shapes) with
//
//   static void evaluate(const ExactInput&, const SolverTensors&, const ExactOutputs&,
//                        const at::Tensor& status);
//   static void sample(const ExactInput&, const SolverTensors&, const SampleOutputs&,
//                      const at::Tensor& status);
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <optional>
#include <string_view>
#include <vector>

#include "aimle/exact/exact.h"
#include "aimle/torch/solve/solver_status.h"

namespace aimle::ops {

struct ExactInput {
  SolverInput rows;
  std::shared_ptr<const UnsizedSolver> solver;
  Check check;
};

/// Checks everything that does not need the sizes of an instance.
ExactInput exact_input(std::string_view op, const at::Tensor& scores, std::string_view solver,
                       const std::optional<at::Tensor>& mask,
                       const std::optional<at::Tensor>& row_data, int64_t check);
void check_v(const at::Tensor& v, const at::Tensor& scores);
void check_sample(const at::Tensor& key, const at::Tensor& scores, const c10::SymInt& samples);

/// The solver for the shape of the scores, which must be known.
Solver fit(const ExactInput& input);

/// [*batch, samples, *instance]
std::vector<c10::SymInt> sample_sizes(const ExactInput& input, const c10::SymInt& samples);

// ---- What devices compute -----------------------------------------------------------------------

/// The requested outputs are defined, and v if the covariance is.
struct ExactOutputs {
  at::Tensor log_partition;
  at::Tensor marginals;
  at::Tensor v;
  at::Tensor covariance;
};

struct SampleOutputs {
  at::Tensor key;  // contiguous
  int64_t samples;
  at::Tensor z;
};

/// The rows of a call for the core and the kernels.
template <class T>
DistributionRows<T> distribution_rows(const SolverTensors& tensors, const ExactOutputs& outputs,
                                      const at::Tensor& status) {
  const auto data = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.mutable_data_ptr<T>() : nullptr;
  };
  return {.count = status.numel(),
          .scores = tensors.scores.const_data_ptr<T>(),
          .mask = tensors.mask_data(),
          .k = tensors.k_data(),
          .data = tensors.instance_data(),
          .v = outputs.v.defined() ? outputs.v.const_data_ptr<T>() : nullptr,
          .status = reinterpret_cast<Status*>(status.mutable_data_ptr<uint8_t>()),
          .log_partition = data(outputs.log_partition),
          .marginals = data(outputs.marginals),
          .covariance = data(outputs.covariance)};
}

/// The same for samples, without the key.
template <class T>
SampleRows<T> sample_rows_of(const SolverTensors& tensors, const SampleOutputs& outputs,
                             const at::Tensor& status) {
  return {.count = status.numel(),
          .samples = outputs.samples,
          .scores = tensors.scores.const_data_ptr<T>(),
          .mask = tensors.mask_data(),
          .k = tensors.k_data(),
          .data = tensors.instance_data(),
          .status = reinterpret_cast<Status*>(status.mutable_data_ptr<uint8_t>()),
          .z = outputs.z.mutable_data_ptr<T>()};
}

// ---- The ops, for any device ----

inline at::Tensor empty_status(const ExactInput& input) {
  return at::empty(input.rows.batch(), input.rows.scores.options().dtype(at::kByte));
}

/// run(zero of the type that the scores are read in)
template <class Run>
void in_type_of(const SolverTensors& tensors, Run run) {
  if (tensors.scores.scalar_type() == at::kDouble) {
    run(double{});
  } else {
    run(float{});
  }
}

template <class Device>
void evaluate_input(const ExactInput& input, const SolverTensors& tensors,
                    const ExactOutputs& outputs) {
  const at::Tensor status = empty_status(input);
  in_type_of(tensors, [&](auto zero) {
    Device::template evaluate<decltype(zero)>(input, tensors, outputs, status);
  });
  raise_for_status(input.rows, status, input.check);
}

template <class Device>
at::Tensor log_partition(const at::Tensor& scores, std::string_view solver,
                         const std::optional<at::Tensor>& mask,
                         const std::optional<at::Tensor>& row_data, int64_t check) {
  const ExactInput input = exact_input("log_partition", scores, solver, mask, row_data, check);
  const SolverTensors tensors = prepare(input.rows);
  const at::Tensor out = at::empty(input.rows.batch(), tensors.scores.options());
  evaluate_input<Device>(input, tensors, {.log_partition = out});
  return out.to(scores.scalar_type());
}

template <class Device>
at::Tensor marginals(const at::Tensor& scores, std::string_view solver,
                     const std::optional<at::Tensor>& mask,
                     const std::optional<at::Tensor>& row_data, int64_t check) {
  const ExactInput input = exact_input("marginals", scores, solver, mask, row_data, check);
  const SolverTensors tensors = prepare(input.rows);
  const at::Tensor out = at::empty(scores.sizes(), tensors.scores.options());
  evaluate_input<Device>(input, tensors, {.marginals = out});
  return out.to(scores.scalar_type());
}

template <class Device>
at::Tensor covariance(const at::Tensor& scores, const at::Tensor& v, std::string_view solver,
                      const std::optional<at::Tensor>& mask,
                      const std::optional<at::Tensor>& row_data, int64_t check) {
  const ExactInput input = exact_input("covariance", scores, solver, mask, row_data, check);
  check_v(v, scores);
  const SolverTensors tensors = prepare(input.rows);
  const at::Tensor out = at::empty(scores.sizes(), tensors.scores.options());
  evaluate_input<Device>(input, tensors,
                         {.v = v.to(tensors.scores.scalar_type()).contiguous(), .covariance = out});
  return out.to(scores.scalar_type());
}

template <class Device>
at::Tensor exact_sample(const at::Tensor& scores, const at::Tensor& key, c10::SymInt samples,
                        std::string_view solver, const std::optional<at::Tensor>& mask,
                        const std::optional<at::Tensor>& row_data, int64_t check) {
  const ExactInput input = exact_input("exact_sample", scores, solver, mask, row_data, check);
  check_sample(key, scores, samples);
  const SolverTensors tensors = prepare(input.rows);
  const at::Tensor z = at::empty_symint(sample_sizes(input, samples), tensors.scores.options());
  const at::Tensor status = empty_status(input);
  const SampleOutputs outputs{.key = key.contiguous(), .samples = samples.expect_int(), .z = z};
  in_type_of(tensors, [&](auto zero) {
    Device::template sample<decltype(zero)>(input, tensors, outputs, status);
  });
  raise_for_status(input.rows, status, input.check);
  return z.to(scores.scalar_type());
}

template <class Device>
void register_exact(torch::Library& library) {
  library.impl("log_partition", log_partition<Device>);
  library.impl("marginals", marginals<Device>);
  library.impl("covariance", covariance<Device>);
  library.impl("exact_sample", exact_sample<Device>);
}

}  // namespace aimle::ops
