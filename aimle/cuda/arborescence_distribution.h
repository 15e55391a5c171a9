// Marginals and covariances of spanning arborescences by a group of threads
// (exact/arborescence_distribution.h has the equations, exact/arborescence_row.h the other steps).
//
// A group processes one dependent d of a row by its escapes, as samples do; the sum of the weights
// of its heads is the last pivot, so the same pass gives the log-partition. O(n^3 / threads) per
// dependent. The CPU computes all pairs at once in O(n^3) (exact/network.h), which is faster for a
// single thread from about ten vertices on.
#pragma once

#include "aimle/exact/arborescence_row.h"

namespace aimle::cuda {

using exact_row::ArborescenceRow;
using exact_row::ArborescenceScratch;
using exact_row::find_escapes;
using exact_row::head_weight;
using exact_row::position_of;

/// Column d of marginals [n, n] and, with tangents, of Cov(z) v, each if not null, of a row whose
/// weights are in scratch.x. Returns A(x). Ends with a sync.
template <class Number, bool kTangents, class T, class Group>
AIMLE_EITHER double evaluate_arborescence(Group& group, const ArborescenceRow& row, int32_t d,
                                          const T* v, const ArborescenceScratch& scratch, T* mu,
                                          T* covariance) {
  const int32_t n = row.n;
  find_escapes<Number, kTangents>(group, n, d, false, v, scratch);
  double total = Number::zero(), of_total = 0;
  for (int32_t h = group.rank(); h < n; h += group.size()) {
    total = Number::add(total, head_weight<Number>(scratch, n, h, d));
  }
  total = group.reduce(total, [](double a, double b) { return Number::add(a, b); });
  const auto tangent = [&](int32_t h) {
    return static_cast<double>(v[h * n + d]) +
           (h == d ? 0.0 : scratch.of_escape[position_of(h, d)]);
  };
  if constexpr (kTangents) {
    for (int32_t h = group.rank(); h < n; h += group.size()) {
      const double part = head_weight<Number>(scratch, n, h, d);
      if (part != Number::zero()) of_total += Number::ratio(part, total) * tangent(h);
    }
    of_total = group.reduce(of_total, Plus{});
  }
  for (int32_t h = group.rank(); h < n; h += group.size()) {
    const double part = head_weight<Number>(scratch, n, h, d);
    const bool possible = part != Number::zero();
    double p = possible ? Number::ratio(part, total) : 0.0;
    p = p < 1 ? p : 1.0;
    if (mu != nullptr) mu[h * n + d] = static_cast<T>(p);
    if constexpr (kTangents) {
      covariance[h * n + d] = static_cast<T>(possible ? p * (tangent(h) - of_total) : 0.0);
    }
  }
  double a = row.offset() + Number::log(total);
  for (int32_t k = 1; k < n; ++k) a += Number::log(scratch.pivot[k]);
  group.sync();
  return a;
}

}  // namespace aimle::cuda
