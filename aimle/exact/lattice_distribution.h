// The distribution over monotone paths, named by the settings of LatticePath and LatticeMoves.
//
//   p(z) = exp<x, z> / Z,   z over the paths from corner to corner.
//
// With Z(t, u) the sum over the paths from (0, 0) to (t, u), which grows like the sums of the solver
// with + in place of the maximum and a product in place of +, every cell keeps the probabilities of
// the move by which a path that meets it came there:
//
//   w_m(t, u) = Z(before m) exp(x_m) / Z(t, u),   sum_m w_m = 1.
//
// A path is then a Markov chain walked from its end, and all the rest follows without logarithms
// and without subtraction, but for the centring of v:
//
//   mu(end) = 1,   mu(before m) += mu(t, u) w_m(t, u)
//   a = E(<v, path up to a cell> | the path meets it) = sum_m w_m (a(before m) + v_m)
//   c = mu E(<v, path beyond a cell> | ...):   c(before m) += w_m (c + mu v_m)
//   Cov v = mu (a - E<v, z>) + c,  for a move mu w_m (a(before m) + v_m - E<v, z>) + w_m c
//   samples: walk back from the end, at (t, u) by number t width + u of the sample's.
//
// Every Z has an exponent of its own (scaled.h): it neither overflows nor loses digits, and errors
// are some (height + width) roundings of float64 wherever the scores lie.
//
// O(height width) time and memory; a sample more costs O(height + width) and the writing of z.
// Masks, the last corner and refusals are those of the solver, but that +inf counts as NaN.
#pragma once

#include "aimle/base/host_device.h"
#include "aimle/exact/distribution.h"
#include "aimle/exact/scaled.h"
#include "aimle/map/lattice_path.h"

namespace aimle {

inline double evaluate_work_ns(const LatticePath& solver) {
  return 200.0 + 10.0 * static_cast<double>(solver.cells());
}
inline double evaluate_work_ns(const LatticeMoves& solver) {
  return 200.0 + 20.0 * static_cast<double>(solver.cells());
}
inline double sample_work_ns(const LatticePath& solver) {
  return 20.0 + 0.2 * static_cast<double>(solver.size()) +
         20.0 * static_cast<double>(solver.height + solver.width);
}
inline double sample_work_ns(const LatticeMoves& solver) {
  return 20.0 + 0.2 * static_cast<double>(solver.size()) +
         20.0 * static_cast<double>(solver.height + solver.width);
}

void evaluate_rows(const LatticePath& solver, const DistributionRows<float>& rows);
void evaluate_rows(const LatticePath& solver, const DistributionRows<double>& rows);
void evaluate_rows(const LatticeMoves& solver, const DistributionRows<float>& rows);
void evaluate_rows(const LatticeMoves& solver, const DistributionRows<double>& rows);
void sample_rows(const LatticePath& solver, const SampleRows<float>& rows);
void sample_rows(const LatticePath& solver, const SampleRows<double>& rows);
void sample_rows(const LatticeMoves& solver, const SampleRows<float>& rows);
void sample_rows(const LatticeMoves& solver, const SampleRows<double>& rows);

namespace detail {

/// The move into a cell for a uniform number, given the shares of the moves.
AIMLE_HD int move_of(double uniform, const double* shares) {
  if (uniform < shares[0]) return 0;
  // The last move that has a share takes what rounding leaves.
  if (shares[2] == 0 || uniform < shares[0] + shares[1]) return shares[1] > 0 ? 1 : 0;
  return 2;
}

}  // namespace detail
}  // namespace aimle
