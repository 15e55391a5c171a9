// Eliminating the last vertex of a network (tree_distribution.h, arborescence_distribution.h), by a
// group of threads, on both devices.
#pragma once

#include "aimle/base/combine.h"
#include "aimle/exact/group_loops.h"
#include "aimle/exact/log_domain.h"

namespace aimle::exact_row {

/// The weights w by which the others reach the last vertex, and their tangents t = d log w. The
/// vertex is replaced by the ways that lead through it.
template <class Number, bool kTangents>
struct Star {
  const double* w;
  const double* t;
  double pivot;
  double of_pivot;

  template <class Group>
  AIMLE_EITHER static Star of(Group& group, const double* w, const double* t, int32_t count) {
    double pivot = Number::zero(), of_pivot = 0;
    for (int32_t l = group.rank(); l < count; l += group.size()) pivot = Number::add(pivot, w[l]);
    pivot = group.reduce(pivot, [](double a, double b) { return Number::add(a, b); });
    if constexpr (kTangents) {
      for (int32_t l = group.rank(); l < count; l += group.size()) {
        of_pivot += Number::ratio(w[l], pivot) * t[l];
      }
      of_pivot = group.reduce(of_pivot, Plus{});
    }
    return {w, t, pivot, of_pivot};
  }

  /// The ways on from the last vertex, by a weight and its tangent.
  struct Ways {
    double share;
    double of_share;
  };
  AIMLE_EITHER Ways ways_on(double weight, double tangent) const {
    return {Number::divide(weight, pivot), tangent - of_pivot};
  }
  /// Adds such a way, from l, to the weight `between` and to its tangent.
  AIMLE_EITHER void add_way(const Ways& ways, int32_t l, double& between, double& of_way) const {
    const double added = Number::multiply(w[l], ways.share);
    if constexpr (kTangents) {
      if (added == Number::zero()) return;
      between = Number::add(between, added);
      of_way += Number::ratio(added, between) * (t[l] + ways.of_share - of_way);
    } else {
      between = Number::add(between, added);
    }
  }
};

}  // namespace aimle::exact_row
