// The categorical distribution: one entry of n, named by the settings of Argmax.
//
//   A(x) = log sum_j exp x_j     mu = softmax(x)     Cov(z) v = mu * (v - <mu, v>)
//
// Shifted by the largest score, so that logits of any size work; O(n). Samples invert the
// cumulative sum with one uniform number each, O(n).
//
// A row without choosable entries is kTooFewEntries.
#pragma once

#include "aimle/exact/distribution.h"
#include "aimle/map/argmax.h"

namespace aimle {

inline double evaluate_work_ns(const Argmax& solver) {
  return 20.0 + 10.0 * static_cast<double>(solver.n);
}
inline double sample_work_ns(const Argmax& solver) { return 20.0 + static_cast<double>(solver.n); }

AIMLE_DECLARE_DISTRIBUTION(Argmax)

}  // namespace aimle
