// The distribution over spanning arborescences, named by the settings of Arborescence.
//
//   p(z) = product over its arcs h -> d, and over its roots v, of w_hd = exp x_hd, r_v = exp x_vv,
//   / Z
//
// By the matrix-tree theorem for directed graphs (Tutte) Z is the determinant of the Laplacian
// whose diagonal contains the sums of the weights that enter a vertex, including roots. As for
// trees (tree_distribution.h) nothing is ever subtracted. Eliminating vertex k leaves
//
//   s_k = r_k + sum over the remaining h of w_hk,   w_hd += w_hk w_kd / s_k,   r_d += r_k w_kd /
//   s_k
//
// and sums, products and quotients of positive numbers keep their relative accuracy:
//
//   A(x)   = sum over all vertices of log s_k
//   mu_hd  = w_hd / (r_d + W_hd + W_dh r_d / r_h), after eliminating all vertices except h and d
//   mu_vv  = r_v / (r_v after eliminating all other vertices)
//   Cov v  : tangents of logarithms are propagated through the same elimination
//
// for all pairs at once in O(n^3). Beyond a spread of 300 the weights are represented by their
// logarithms.
//
// `single_root`: all r_v are reduced by the same factor e^-K, which does not change the
// distribution over arborescences with one root, and K is so large that the total weight of those
// with more roots is less than e^-40 of theirs.
//
// Samples process the vertices one by one: the head of d is h with probability proportional to w_hd
// times the probability that a walk against the arcs, starting from h, reaches a root before d,
// where vertices that already have a head keep it. O(n^3) per vertex; exact for every spread.
//
// An arc of -inf, or a masked one, has probability 0; if no arborescence is left the row is
// kDisconnected.
#pragma once

#include "aimle/exact/distribution.h"
#include "aimle/map/arborescence.h"

namespace aimle {

inline double evaluate_work_ns(const Arborescence& solver) {
  const auto n = static_cast<double>(solver.vertices);
  return 200.0 + 16.0 * n * n * n;
}
inline double sample_work_ns(const Arborescence& solver) {
  const auto n = static_cast<double>(solver.vertices);
  return 100.0 + 0.5 * n * n * n * n;
}

AIMLE_DECLARE_DISTRIBUTION(Arborescence)

}  // namespace aimle
