// The distribution over monotone paths, defined by the settings of LatticePath and LatticeMoves.
//
//   p(z) = exp<x, z> / Z,   z over the paths from corner to corner.
//
// With Z(t, u) the sum over the paths from (0, 0) to (t, u), which is computed like the sums of the
// solver with + instead of the maximum and a product instead of +, every cell stores the
// probabilities of the move by which a path through it arrived:
//
//   w_m(t, u) = Z(before m) exp(x_m) / Z(t, u),   sum_m w_m = 1.
//
// Going backwards, a path is then a Markov chain, and everything else follows without logarithms
// and without subtraction, except for centring v:
//
//   mu(end) = 1,   mu(before m) += mu(t, u) w_m(t, u)
//   a = E(<v, path up to a cell> | the path meets it) = sum_m w_m (a(before m) + v_m)
//   c = mu E(<v, path beyond a cell> | ...):   c(before m) += w_m (c + mu v_m)
//   Cov v = mu (a - E<v, z>) + c,  for a move mu w_m (a(before m) + v_m - E<v, z>) + w_m c
//   samples: a walk backwards, using number t width + u of the sample at (t, u).
//
// Every Z has its own exponent (scaled.h): it neither overflows nor loses digits, and errors are
// some (height + width) roundings of float64 for any scores.
//
// O(height width) time and memory; each additional sample costs O(height + width) plus writing z.
// Masks, the last corner and invalid rows are those of the solver, except that +inf counts as NaN.
#pragma once

#include "aimle/base/host_device.h"
#include "aimle/exact/distribution.h"
#include "aimle/exact/scaled.h"
#include "aimle/map/lattice_path.h"

namespace aimle {

template <LatticeScores kScores>
double evaluate_work_ns(const Lattice<kScores>& solver) {
  constexpr double kPerCell = Lattice<kScores>::kPerMove ? 20.0 : 10.0;
  return 200.0 + kPerCell * static_cast<double>(solver.cells());
}
template <LatticeScores kScores>
double sample_work_ns(const Lattice<kScores>& solver) {
  return 20.0 + 0.2 * static_cast<double>(solver.size()) +
         20.0 * static_cast<double>(solver.height + solver.width);
}

AIMLE_DECLARE_DISTRIBUTION(LatticePath)
AIMLE_DECLARE_DISTRIBUTION(LatticeMoves)

namespace detail {

/// The move into a cell for a uniform number, given the probabilities of the moves.
AIMLE_HD int move_of(double uniform, const double* shares) {
  if (uniform < shares[0]) return 0;
  // The last move with a probability takes the rounding error.
  if (shares[2] == 0 || uniform < shares[0] + shares[1]) return shares[1] > 0 ? 1 : 0;
  return 2;
}

}  // namespace detail
}  // namespace aimle
