// The k-subset distribution: k entries of n, named by the settings of TopK.
//
//   p(z) = exp<x, z> / Z,   z in {0,1}^n with sum(z) = k.
//
// Z is the elementary symmetric polynomial of degree k in exp(x_j), found by the usual dynamic
// programme over entries and counts. Its terms span hundreds of orders of magnitude, so it runs on
// probabilities instead: the distribution does not change when all scores move by a constant c, and
// with c such that sum_j sigmoid(x_j - c) = k (the tilt; to within 0.1) independent coin flips of
// probability p_j = sigmoid(x_j - c), given that k of them come up, are that distribution. With
//
//   F_j(r) = P(r of the first j come up)      F_{j+1}(r) = (1 - p_j) F_j(r) + p_j F_j(r - 1)
//   B_j(r) = P(r of the entries j, j+1, ... come up), likewise from the other end:
//
//   A(x)  = k c + sum_j log(1 + exp(x_j - c)) + log F_n(k)
//   mu_j  = p_j sum_r F_j(r) B_{j+1}(k - 1 - r) / F_n(k)
//   Cov v : the same sums with the tangents of F and B that carry <z, v>, v centred so that
//           E<z, v> = 0
//   samples: entry j is taken, r being still wanted, with p_j B_{j+1}(r - 1) / B_j(r).
//
// k is about the mean of the number that come up, hence close to its mode: F_n(k) >= 1/(2n), say.
// Nothing is subtracted, nothing that matters underflows, and no logarithm is in the loops; errors
// are some n roundings of float64, also for n = 1000, k = 100 and logits far apart.
// Coins given their sum: Chen, Dempster, Liu, "Weighted finite population sampling to maximize
// entropy", Biometrika 1994. Exact marginals for gradients: Ahmed, Zeng, Niepert, Van den Broeck,
// "SIMPLE", ICLR 2023.
//
// O(nk) time; O(k) memory for the log-partition alone, else O(nk). A sample more costs O(n).
// k = 0 and k = all that may be chosen are one certain structure. k may differ per row. A k outside
// [0, n] is kBadK, fewer than k choosable entries are kTooFewEntries, as for TopK.
#pragma once

#include "aimle/exact/distribution.h"
#include "aimle/map/topk.h"

namespace aimle {

inline double evaluate_work_ns(const TopK& solver) {
  return 100.0 + static_cast<double>(solver.n) * (100.0 + 4.0 * static_cast<double>(solver.k));
}
inline double sample_work_ns(const TopK& solver) {
  return 20.0 + 12.0 * static_cast<double>(solver.n);
}

AIMLE_DECLARE_DISTRIBUTION(TopK)

}  // namespace aimle
