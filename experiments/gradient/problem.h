// A problem whose true gradient is known: scores, a structure, a loss.
//
// The loss of a discrete z is linear on zeros and ones, since z_j^2 = z_j:
//
//   f(z) = ||z - b||^2 = <1 - 2b, z> + const,   dy = 2 (z - b), as a network would return it
//
// so the gradient of E f(z) under p(z) ~ exp<theta, z> is Cov(z) v with v = 1 - 2b: for k-subsets
// -2 Cov(z) b. It comes from the exact distributions (aimle/exact).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "aimle/torch/layer.h"

namespace aimle::experiments {

struct Problem {
  SolverSpec solver;
  at::Tensor theta;          // [1, *instance], float32
  at::Tensor target;         // b, [*instance]
  at::Tensor true_gradient;  // [*instance], float64; filled by solve_exactly

  int64_t size() const { return theta.numel(); }
};

/// Fills in the true gradient. Throws for a structure without an exact distribution.
void solve_exactly(Problem& problem);

/// The authors' problem of this seed: theta = randn(n), then b = |randn(n)| (`is_signed`: randn(n),
/// as the paper's text has it) from RandomState(seed), as float32. k = 1 is argmax.
Problem synthetic_problem(int64_t n, int64_t k, uint32_t seed, bool is_signed = false);

/// E f(z) at theta: exact, for targets b.
double expected_loss(const Problem& problem, const at::Tensor& theta);
/// The smallest loss of any structure.
double least_loss(const Problem& problem);

}  // namespace aimle::experiments
