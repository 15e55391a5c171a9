// Thresholds: the gradient of argmax, top-k and spanning trees from one solve, without a step size.
//
// Hold all noise but that of entry j. The solution then depends on x_j only through whether it
// exceeds a threshold t_j: above, j is in; below, its partner m_j is in instead. So with noise of
// density p and distribution F, temperature tau, and u_j = (t_j - theta_j) / tau,
//
//   d/dtheta_j E f(z) = E[ p(u_j) / tau (f(z with j) - f(z with m_j)) ]
//
// One solve tells t_j and m_j for every j, in time linear in the number of entries:
//
//   argmax, top-k   j in: the best entry that is out; j out: the worst entry that is in
//   spanning tree   j in: the heaviest edge outside the tree across the cut that j leaves;
//                   j out: the lightest edge on the tree path between the ends of j
//
// and a Taylor expansion gives the difference of f from d, the gradient of f at the z that was
// seen:
//
//   kFirst      g_j = p(u_j) (d_j - d_m) / tau
//   kTrapezoid  g_j = 1/2 w_j (d_j - d_m) / tau,  w_j = p/(1 - F) if j is in, p/F if it is out,
//
// the trapezoid weighing each of the two states by how seldom it is seen, so that its expectation
// uses the gradients at both: unbiased for every quadratic f, where kFirst is for linear f only.
// No structure changes if the same number is added to all theta, so the mean of g is subtracted.
//
// Weights (threshold_weight.h): Gumbel p/F = e^-u, p/(1 - F) <= 1; Logistic both <= 1; Normal about
// |u|. Those beyond max_weight are cut to it, a bias that the report measures. Noise without a
// density in closed form is refused: for Sum-of-Gamma F ~ u^(iterations/k) at its lower end, and
// with k >= iterations w has no second moment. Without noise (evaluation) nothing is left to chance
// and kFirst is used, at the density and temperature given.
//
// All in float64 and in a fixed order, so that every machine finds the same bits: an entry's
// samples one after the other; the mean over the entries, and the totals of the report over entries
// and then over examples, in the order of fixed_sum.h.
#pragma once

#include <limits>

#include "aimle/base/check.h"
#include "aimle/estimate/passes.h"

namespace aimle {

/// The number of entries in a solution of a solver that has thresholds; throws
/// std::invalid_argument for the others.
inline int64_t entries_in_solution(const Solver& solver) {
  AIMLE_CHECK(
      solver.swaps() != Swaps::kNone,
      "[aimle::thresholds] expected a solver such as argmax, topk or spanning_tree but got ",
      solver.name(), ": its entries have no single partner each; use aimle or imle");
  return solver.solution_size().ones;
}

/// Does forward keep the rivals of its rows?
inline bool keeps_rivals(const EstimatorSettings& settings, const Solver& solver) {
  return settings.difference == Difference::kThresholds && solver.swaps() == Swaps::kEntry &&
         solver.size() <= std::numeric_limits<int32_t>::max();
}

/// Writes the rivals of rows with scores x [count, n] and solutions `bits`, of which `first` is the
/// first of all, to where ForwardPass::rivals has room for them.
template <class T>
void keep_rivals(const Examples<T>& examples, int64_t samples, const T* x, const uint8_t* bits,
                 int64_t first, int64_t count, std::byte* rivals);

/// The gradient of Difference::kThresholds; `pass.bits` is what forward wrote.
template <class T>
BackwardReport threshold_backward(const EstimatorSettings& settings, const Solver& solver,
                                  const Examples<T>& examples, const BackwardPass<T>& pass,
                                  const Executor& executor);

}  // namespace aimle
