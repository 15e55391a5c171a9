// One row of the distribution over spanning trees by a group of threads, on both devices: reading
// it, eliminating its vertices, and its log-partition; tree_distribution.h has the equations.
#pragma once

#include <cstdint>

#include "aimle/exact/group_loops.h"
#include "aimle/exact/star.h"
#include "aimle/exact/wilson.h"
#include "aimle/map/map.h"

namespace aimle::exact_row {

/// A row as a graph.
struct TreeRow {
  Status status;
  int32_t n;
  bool directed;
  double largest;  // logit
  bool linear;     // weights are far from underflow
  bool walkable;   // complete, and random walks are short
};

/// Where a row holds edge {i, j}, i < j: at one place, or at two if it is directed.
struct EdgeAt {
  int32_t first;
  int32_t second;

  AIMLE_EITHER static EdgeAt of(int32_t n, bool directed, int32_t i, int32_t j) {
    if (directed) return {i * (n - 1) + j - 1, j * (n - 1) + i};
    const int32_t at = i * (2 * n - i - 1) / 2 + (j - i - 1);
    return {at, at};
  }
  /// The combined value of the row's values.
  template <class T>
  AIMLE_EITHER double read(const T* row) const {
    const auto value = static_cast<double>(row[first]);
    return second == first ? value : value + static_cast<double>(row[second]);
  }
  template <class T>
  AIMLE_EITHER void write(double value, T* row) const {
    row[first] = row[second] = static_cast<T>(value);
  }
  AIMLE_EITHER bool allowed(const bool* mask) const {
    return mask == nullptr || (mask[first] && mask[second]);
  }
};

/// Reads the logits of a row into w [pairs], -inf for missing edges. `state` [n] is memory of the
/// group. Ends with a sync.
template <class T, class Group>
AIMLE_EITHER TreeRow read_tree(Group& group, int32_t n, bool directed, const T* scores,
                               const bool* mask, double* w, uint8_t* state) {
  const double inf = __builtin_huge_val();
  double smallest = inf, largest = -inf;
  bool bad = false, missing = false;
  for_each_pair(group, n, [&](int32_t at, int32_t j, int32_t i) {
    const EdgeAt edge = EdgeAt::of(n, directed, i, j);
    double x = -inf;
    if (edge.allowed(mask)) {
      x = edge.read(scores);
      bad |= x != x || x == inf;
    }
    w[at] = x;
    if (x == -inf) {
      missing = true;
    } else {
      smallest = x < smallest ? x : smallest;
      largest = x > largest ? x : largest;
    }
  });
  if (group.any(bad)) return {Status::kNaN, n, directed, 0, true, false};
  largest = group.reduce(largest, Higher{});
  smallest = group.reduce(smallest, Lower{});
  const bool incomplete = group.any(missing);
  const bool connected =
      !incomplete || reaches_all(
                         group, n, state, [](int32_t v) { return v == 0; },
                         [&](int32_t u, int32_t v) { return w[pair_of_ends(u, v)] != -inf; });
  const double spread = largest - smallest;
  return {connected ? Status::kOk : Status::kDisconnected,
          n,
          directed,
          largest,
          !(spread > aimle::detail::kLinearSpread),
          n > 2 && !incomplete && spread <= aimle::detail::kWalkSpread};
}

/// Converts the logits in w to conductances, the largest of which is 1. Ends with a sync.
template <class Number, class Group>
AIMLE_EITHER void load_network(Group& group, const TreeRow& row, double* w) {
  for (int32_t at = group.rank(); at < pairs_of(row.n); at += group.size()) {
    w[at] = w[at] == -__builtin_huge_val() ? Number::zero() : Number::from_log(w[at] - row.largest);
  }
  group.sync();
}

/// Eliminates vertex k, the last of a network, and returns its pivot. `pivots` [2] is memory of the
/// group. Ends with a sync.
template <class Number, bool kTangents, class Group>
AIMLE_EITHER double eliminate_last(Group& group, int32_t k, double* w, double* t, double* pivots) {
  using LastStar = Star<Number, kTangents>;
  const int32_t first = pairs_of(k);
  if (group.rank() == 0) {
    aimle::detail::OneThread alone;
    const LastStar star = LastStar::of(alone, w + first, t + first, k);
    pivots[0] = star.pivot;
    pivots[1] = star.of_pivot;
  }
  group.sync();
  const LastStar star{w + first, t + first, pivots[0], pivots[1]};
  for_each_pair(
      group, k, [&](int32_t i) { return star.ways_on(w[first + i], t[first + i]); },
      [&](const auto& ways, int32_t at, int32_t, int32_t j) {
        star.add_way(ways, j, w[at], t[at]);
      });
  group.sync();
  return star.pivot;
}

/// A(x) of a row whose conductances are in w, which is overwritten. Ends with a sync.
template <class Number, class Group>
AIMLE_EITHER double log_partition_of_tree(Group& group, const TreeRow& row, double* w,
                                          double* pivots) {
  if (row.n == 1) return 0;
  double sum = static_cast<double>(row.n - 1) * row.largest;
  for (int32_t k = row.n - 1; k > 0; --k) {
    sum += Number::log(eliminate_last<Number, false>(group, k, w, w, pivots));
  }
  return sum;
}

}  // namespace aimle::exact_row
