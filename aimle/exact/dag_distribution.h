// The distribution over the paths of an acyclic graph, defined by the settings of DagPath.
//
//   p(z) = exp<x, z> / Z,   z the entries of a path from the source to the target.
//
// With F(v) the sum of exp<x, z> over the paths from the source to v,
//
//   F(source) = 1,   F(v) = sum over arcs a into v of F(tail_a) exp(x_a),   Z = F(target),
//
// a path through v arrived by arc a with probability q_a = F(tail_a) exp(x_a) / F(v). The rest goes
// backwards from the target: P(v), the probability that a path passes through v, gives
//
//   mu_a  = P(head_a) q_a
//   Cov v : the same sums, with the mean of <z, v> before v (a second table) and after it
//   (propagated)
//   samples: a random walk backwards.
//
// F is represented by its logarithm, so that scores of any size work. O(arcs) time. Graphs with
// cycles have no such form, because their number of paths is unbounded.
#pragma once

#include "aimle/exact/distribution.h"
#include "aimle/map/graph_path.h"

namespace aimle {

inline double evaluate_work_ns(const DagPath& solver) {
  return 200.0 + 40.0 * static_cast<double>(solver.vertices + solver.arc_count());
}
inline double sample_work_ns(const DagPath& solver) {
  return 20.0 + 20.0 * static_cast<double>(solver.vertices);
}

AIMLE_DECLARE_DISTRIBUTION(DagPath)

}  // namespace aimle
