// The ops of exact distributions: checks and results shared by all devices.
//
//   log_partition  [*batch]                 its gradient: the marginals
//   marginals      [*batch, *instance]      their gradient: covariance, with v = dy
//   covariance     [*batch, *instance]      Cov(z) v; differentiable in v, not in the scores
//   exact_sample   [*batch, samples, *instance]   no gradient
//
// scores, solver, mask, row_data and check are those of `solve`. exact_autograd.cpp differentiates;
// the devices compute, each a struct in its own file (exact_cpu.cpp, exact_cuda.cpp) with
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

/// Runs `run(zero of the type that kernels read, status of each row)`; raises for bad rows.
template <class Run>
void compute_rows(const ExactInput& input, const SolverTensors& tensors, Run run) {
  const at::Tensor status =
      at::empty(input.rows.batch(), input.rows.scores.options().dtype(at::kByte));
  if (tensors.scores.scalar_type() == at::kDouble) {
    run(double{}, status);
  } else {
    run(float{}, status);
  }
  raise_for_status(input.rows, status, input.check);
}

/// What the ops return: results that the device computes, of these sizes.
template <class Device>
struct Computed {
  static at::Tensor evaluate(const ExactInput& input, at::Tensor ExactOutputs::*output,
                             c10::SymIntArrayRef sizes, const at::Tensor& v) {
    const SolverTensors tensors = prepare(input.rows);
    const at::TensorOptions options = tensors.scores.options();
    ExactOutputs outputs;
    if (v.defined()) outputs.v = v.to(tensors.scores.scalar_type()).contiguous();
    outputs.*output = at::empty_symint(sizes, options);
    compute_rows(input, tensors, [&]<class T>(T, const at::Tensor& status) {
      Device::template evaluate<T>(input, tensors, outputs, status);
    });
    return (outputs.*output).to(input.rows.scores.scalar_type());
  }

  static at::Tensor sample(const ExactInput& input, const at::Tensor& key,
                           const c10::SymInt& samples, c10::SymIntArrayRef sizes) {
    const SolverTensors tensors = prepare(input.rows);
    const SampleOutputs outputs{.key = key.contiguous(),
                                .samples = samples.expect_int(),
                                .z = at::empty_symint(sizes, tensors.scores.options())};
    compute_rows(input, tensors, [&]<class T>(T, const at::Tensor& status) {
      Device::template sample<T>(input, tensors, outputs, status);
    });
    return outputs.z.to(input.rows.scores.scalar_type());
  }
};

template <class Result>
at::Tensor log_partition(const at::Tensor& scores, std::string_view solver,
                         const std::optional<at::Tensor>& mask,
                         const std::optional<at::Tensor>& row_data, int64_t check) {
  const ExactInput input = exact_input("log_partition", scores, solver, mask, row_data, check);
  return Result::evaluate(input, &ExactOutputs::log_partition, input.rows.sym_batch(), {});
}

template <class Result>
at::Tensor marginals(const at::Tensor& scores, std::string_view solver,
                     const std::optional<at::Tensor>& mask,
                     const std::optional<at::Tensor>& row_data, int64_t check) {
  const ExactInput input = exact_input("marginals", scores, solver, mask, row_data, check);
  return Result::evaluate(input, &ExactOutputs::marginals, scores.sym_sizes(), {});
}

template <class Result>
at::Tensor covariance(const at::Tensor& scores, const at::Tensor& v, std::string_view solver,
                      const std::optional<at::Tensor>& mask,
                      const std::optional<at::Tensor>& row_data, int64_t check) {
  const ExactInput input = exact_input("covariance", scores, solver, mask, row_data, check);
  check_v(v, scores);
  return Result::evaluate(input, &ExactOutputs::covariance, scores.sym_sizes(), v);
}

template <class Result>
at::Tensor exact_sample(const at::Tensor& scores, const at::Tensor& key, c10::SymInt samples,
                        std::string_view solver, const std::optional<at::Tensor>& mask,
                        const std::optional<at::Tensor>& row_data, int64_t check) {
  const ExactInput input = exact_input("exact_sample", scores, solver, mask, row_data, check);
  check_sample(key, scores, samples);
  return Result::sample(input, key, samples, sample_sizes(input, samples));
}

template <class Result>
void register_exact(torch::Library& library) {
  library.impl("log_partition", log_partition<Result>);
  library.impl("marginals", marginals<Result>);
  library.impl("covariance", covariance<Result>);
  library.impl("exact_sample", exact_sample<Result>);
}

}  // namespace aimle::ops
