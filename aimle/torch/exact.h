// The ops of exact distributions: what every device checks and returns.
//
//   log_partition  [*batch]                 its gradient: the marginals
//   marginals      [*batch, *instance]      their gradient: covariance, with v = dy
//   covariance     [*batch, *instance]      Cov(z) v; differentiable in v, not in the scores
//   exact_sample   [*batch, samples, *instance]   no gradient
//
// scores, mask, k per row and check are those of the solver ops; `solver` and `solver_args` name
// the structures, as in the layer ops: "argmax" [], "topk" [k], "spanning_tree" [vertices]. Devices
// compute (exact_cpu.cpp; shapes alone: exact_meta.cpp), exact_autograd.cpp differentiates.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>
#include <vector>

#include "aimle/exact/exact.h"
#include "aimle/torch/solver_status.h"

namespace aimle::ops {

struct ExactInput {
  SolverInput rows;
  std::string_view solver;
  at::IntArrayRef solver_args;
  Check check;
};

/// Checks everything that does not need the sizes of an instance.
ExactInput exact_input(std::string_view op, const at::Tensor& scores, std::string_view solver,
                       at::IntArrayRef solver_args, const std::optional<at::Tensor>& mask,
                       const std::optional<at::Tensor>& k, int64_t check);
void check_v(const at::Tensor& v, const at::Tensor& scores);
void check_sample(const at::Tensor& key, const at::Tensor& scores, const c10::SymInt& samples);

/// The distribution, its settings held against the shape of scores, which must be known.
Distribution make_distribution(const ExactInput& input);

/// [*batch, samples, n]
std::vector<c10::SymInt> sample_sizes(const at::Tensor& scores, const c10::SymInt& samples);

}  // namespace aimle::ops
