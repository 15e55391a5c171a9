// The distribution over spanning trees, defined by the settings of SpanningTree.
//
//   p(tree) = product over its edges of w_e / Z,   w_e = exp x_e.
//
// By Kirchhoff's theorem Z is the determinant of the Laplacian without one row and column, and
// mu_e = w_e R_e with R_e the effective resistance between the ends of e. Inverting the Laplacian
// fails if weights are far apart: two clusters with logits +30 inside and -30 across make it
// singular in float64. Here nothing is ever subtracted. Eliminating vertex k replaces a star by a
// mesh:
//
//   s_k = sum over the remaining l of w_kl,     w_ij += w_ik w_jk / s_k
//
// where the pivot s_k is a sum (Grassmann, Taksar, Heyman, "Regenerative analysis and steady state
// distributions for Markov chains", Operations Research 1985). Sums, products and quotients of
// positive numbers keep their relative accuracy for any spread, so that
//
//   A(x)   = sum over the eliminated vertices of log s_k
//   mu_e   = w_e / W_e, W_e = the conductance between the ends of e after eliminating all others
//   Cov v  : the tangent of log W_e along v is a mean of v over edges with weights that sum to 1,
//            propagated through the same elimination as d log w; (Cov v)_e = mu_e (v_e - d log W_e)
//
// are accurate to some n roundings. W for all pairs at once: split the vertices into three parts,
// eliminate each part in turn and recurse on the other two; every pair remains in some branch. That
// is T(n) = 3 T(2n/3) + O(n^3), which is O(n^3). Beyond a spread of 300 the weights are represented
// by their logarithms.
//
// Samples process the edges one by one, the heaviest first: edge e belongs to the tree with
// probability w_e / W_e in the graph where chosen edges are contracted and rejected edges are
// removed. O(n^3) per edge, at most n^2/2 edges; exact and finite for every spread. Complete graphs
// whose logits are within 3 of each other are sampled by random walks (wilson.h), some n steps per
// tree, with a limit after which the edges are processed one by one instead.
//
// Layouts, and masks, as in map/spanning_tree.h: directed weights are x_ij + x_ji, and marginals
// and samples are written to both directions. An edge of -inf has probability 0; if no tree is left
// the row is kDisconnected.
#pragma once

#include "aimle/exact/distribution.h"
#include "aimle/map/spanning_tree.h"

namespace aimle {

inline double evaluate_work_ns(const SpanningTree& solver) {
  const auto n = static_cast<double>(solver.vertices);
  return 100.0 + 8.0 * n * n * n;
}
inline double sample_work_ns(const SpanningTree& solver) {
  const auto n = static_cast<double>(solver.vertices);
  return 100.0 + 0.1 * n * n * n * n * n;
}

AIMLE_DECLARE_DISTRIBUTION(SpanningTree)

}  // namespace aimle
