// Squared distances in closed form: f(z) = ||z - b||^2 under an exact distribution.
//
// Entries of z are 0 or 1, so (z_j - b_j)^2 = b_j^2 + (1 - 2 b_j) z_j is linear in z, and
//
//   E f(z)      = sum_j b_j^2 + (1 - 2 b_j) mu_j
//   grad E f(z) = Cov(z) (1 - 2 b)       (= -2 Cov(z) b where all structures are of one size)
//
// at the cost of one evaluation, whatever the number of structures. Any other f: enumerate.h.
//
//   const aimle::Expectation e = aimle::expected_square(aimle::TopK{.n = 50, .k = 1}, theta,
//                                                       nullptr, b);
#pragma once

#include <vector>

#include "aimle/exact/distribution.h"
#include "aimle/exact/enumerate.h"

namespace aimle {

/// For one row; b [size]. A refused row has its status and NaN for value and gradient.
template <ExactDistribution S>
Expectation expected_square(const S& solver, const double* scores, const bool* mask,
                            const double* b) {
  const auto size = static_cast<size_t>(solver.size());
  std::vector<double> slope(size), mu(size);
  for (size_t j = 0; j < size; ++j) slope[j] = 1 - 2 * b[j];
  Expectation result{.gradient = std::vector<double>(size)};
  evaluate(solver, DistributionRows<double>{.count = 1,
                                            .scores = scores,
                                            .mask = mask,
                                            .v = slope.data(),
                                            .status = &result.status,
                                            .marginals = mu.data(),
                                            .covariance = result.gradient.data()});
  for (size_t j = 0; j < size; ++j) result.value += b[j] * b[j] + slope[j] * mu[j];
  return result;
}

}  // namespace aimle
