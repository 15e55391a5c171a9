// The distribution over label sequences of a chain (a linear-chain CRF), named by the settings of
// Chain.
//
//   p(y) = exp(sum over t of x[t, y_t, y_t+1]) / Z.
//
// With w = exp(x), forward and backward sums
//
//   F_0(i) = 1        F_t+1(j) = sum over i of F_t(i) w[t, i, j]
//   B_T(j) = 1        B_t(i)   = sum over j of w[t, i, j] B_t+1(j)
//
// give, with T = length - 1 the number of steps,
//
//   A(x)    = log sum over j of F_T(j)
//   mu_tij  = F_t(i) w[t, i, j] B_t+1(j) / Z
//   Cov(z) v: mu_tij (f_t(i) + v_tij + b_t+1(j)), v centred so that E<z, v> = 0 at every step; f
//             and b are the means of <z, v> over the parts before and after, given the label
//   samples:  the last label by F_T, then, going backwards, label i before j with
//             F_t(i) w[t, i, j] / F_t+1(j); number t of a sample determines label t.
//
// The sums of a step are divided by the largest of them, so that only their spread matters. If the
// scores of a row are so close that nothing can underflow, the sums are calculated directly,
// otherwise by their logarithms: no precision is lost however far apart the scores are.
//
// O(length labels^2); each additional sample costs O(length labels). A mask shortens chains as for
// Chain.
// NaN and +inf are kNaN; if no sequence is left the row is kDisconnected.
#pragma once

#include "aimle/exact/distribution.h"
#include "aimle/map/chain.h"

namespace aimle {

inline double evaluate_work_ns(const Chain& solver) {
  return 200.0 + 10.0 * static_cast<double>(solver.size());
}
inline double sample_work_ns(const Chain& solver) {
  return 50.0 +
         static_cast<double>(solver.length) * (30.0 + 4.0 * static_cast<double>(solver.labels));
}

AIMLE_DECLARE_DISTRIBUTION(Chain)

}  // namespace aimle
