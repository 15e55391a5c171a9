// Thresholds: the gradient of many structures from one solve, without a step size.
//
// With all noise fixed except that of entry j, the solution depends on x_j only through whether it
// exceeds a threshold t_j: above, it is z+, which contains j; below, it is z-, which does not. With
// noise of density p and distribution function F, temperature tau, and u_j = (t_j - theta_j) / tau,
//
//   d/dtheta_j E f(z) = E[ p(u_j) / tau (f(z+) - f(z-)) ]
//
// One solve gives t_j, z+ and z- for every j, in time linear in the number of entries. One of z+
// and z- is the solution itself; the other one differs from it as follows:
//
//   argmax, top-k   j in: the best entry that is out for j; j out: j for the worst entry that is in
//   spanning tree   j in: the heaviest edge outside the tree across the cut that j leaves;
//                   j out: the lightest edge on the tree path between the ends of j
//   Bernoulli       j alone; t_j = 0
//   chain, lattice  a path: j in: the best one without j; j out: the best one through j, from the
//                   best paths to and from every label or cell (chain_thresholds.cpp,
//                   lattice_swaps.h)
//
// A Taylor expansion gives the difference of f from d, the gradient of f at the z that was drawn:
//
//   kFirst      g_j = p(u_j) <d, z+ - z-> / tau
//   kTrapezoid  g_j = 1/2 w_j <d, z+ - z-> / tau,  w_j = p/(1 - F) if j is in, p/F if it is out,
//
// The trapezoid weights each of the two states by the inverse of its probability, so that its
// expectation uses the gradients at both: it is unbiased for every quadratic f, kFirst only for
// linear f. If all solutions have the same size, adding the same number to all theta changes none,
// so the mean of g is subtracted; otherwise the noise is centred, and t_j is compared with the
// noise accordingly.
//
// Weights (threshold_weight.h): Gumbel p/F = e^-u, p/(1 - F) <= 1; Logistic both <= 1; Normal about
// |u|. Those beyond max_weight are capped at it, a bias that the report measures. Noise without a
// density in closed form is not accepted: for Sum-of-Gamma F ~ u^(iterations/k) at its lower end,
// and with k >= iterations w has no second moment. Without noise (evaluation) the solution is
// deterministic and kFirst is used, with the given density and temperature.
//
// Everything is in float64 and in a fixed order, so that every machine gives the same bits: an
// entry's samples one after the other; the mean over the entries, and the totals of the report over
// entries and then over examples, in the order of fixed_sum.h.
#pragma once

#include <limits>

#include "aimle/base/check.h"
#include "aimle/estimate/passes.h"

namespace aimle {

/// The number of entries in a solution of a solver that has thresholds, -1 if it varies; throws
/// std::invalid_argument for other solvers.
inline int64_t entries_in_solution(const Solver& solver) {
  AIMLE_CHECK(
      solver.swaps() != Swaps::kNone,
      "[aimle::thresholds] expected a solver such as argmax, topk, spanning_tree or chain but got ",
      solver.name(), ", which does not provide the thresholds of its entries; use aimle or imle");
  return solver.solution_size().ones;
}

/// Whether forward keeps the rivals of its rows.
inline bool keeps_rivals(const PassSettings& settings, const Solver& solver) {
  return settings.difference == Difference::kThresholds && solver.swaps() == Swaps::kEntry &&
         solver.size() <= std::numeric_limits<int32_t>::max();
}

/// Writes the rivals of rows with scores x [count, n] and solutions `bits`, the first of which is
/// row `first`, to ForwardPass::rivals.
template <class T>
void keep_rivals(const Examples<T>& examples, int64_t samples, const T* x, const uint8_t* bits,
                 int64_t first, int64_t count, std::byte* rivals);

/// The gradient of Difference::kThresholds; `pass.bits` was written by forward.
template <class T>
BackwardReport threshold_backward(const PassSettings& settings, const Solver& solver,
                                  const Examples<T>& examples, const BackwardPass<T>& pass,
                                  const Executor& executor);

}  // namespace aimle
