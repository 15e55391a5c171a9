// The distribution over the sets of items that fit into a knapsack, defined by the settings of
// Knapsack.
//
//   p(z) = exp<x, z> / Z,   z in {0,1}^n with <w, z> <= capacity.
//
// With B_j(c) the sum of exp<x, z> over the sets of the items j, j+1, ... that weigh at most c,
//
//   B_n(c) = 1,   B_j(c) = B_{j+1}(c) + exp(x_j) B_{j+1}(c - w_j),   Z = B_0(capacity),
//
// an item is taken, with capacity c left, with probability q_j(c) = exp(x_j) B_{j+1}(c - w_j) /
// B_j(c).
// The rest is a pass over the items: P_j(c), the probability that c is left before item j, gives
//
//   mu_j  = sum_c P_j(c) q_j(c)
//   Cov v : the same sums, with <z, v> over the items before j (propagated) and after it (its mean
//           given c, a second table)
//   samples: a random walk over the items.
//
// B is calculated directly, or by its logarithm if scores are large (log_domain.h); nothing is
// subtracted. O(n C) time and memory, C as in map/knapsack.h; at most kMaxKnapsackCells cells,
// otherwise the row is kTooLarge. A score of +inf is kNaN, one of -inf is in no set.
#pragma once

#include "aimle/exact/distribution.h"
#include "aimle/map/knapsack.h"

namespace aimle {

inline constexpr int64_t kMaxKnapsackCells = int64_t{1} << 26;

inline double evaluate_work_ns(const Knapsack& solver) {
  return 100.0 + 1000.0 * static_cast<double>(solver.n);
}
inline double sample_work_ns(const Knapsack& solver) {
  return 20.0 + 20.0 * static_cast<double>(solver.n);
}

AIMLE_DECLARE_DISTRIBUTION(Knapsack)

}  // namespace aimle
