// The distribution over spanning trees by a group of threads (exact/tree_distribution.h has the
// equations).
//
// The conductance between every two vertices after eliminating all others comes from the CPU's
// recursion: split the vertices into three parts, eliminate each part in turn and recurse on the
// other two. Here it runs level by level. A level has 3^l networks, and all of them eliminate their
// vertices in step: pivots by one thread per network, then stars are replaced by meshes by one
// thread per pair, with a sync after each. Networks of three vertices are finished in closed form.
// Every pair
// then
// follows its own path down: at each level the first part that contains neither of its vertices.
//
// O(n^3) work on O(n^2.7) numbers, which are counted in 32 bits: up to kMaxTreeVertices vertices.
#pragma once

#include <cmath>
#include <cstdint>

#include "aimle/base/host_device.h"
#include "aimle/cuda/group.h"
#include "aimle/exact/log_domain.h"
#include "aimle/exact/wilson.h"
#include "aimle/map/spanning_tree.h"

namespace aimle::cuda {

inline constexpr int64_t kMaxTreeVertices = 1000;

/// Pairs among n vertices, and the position of {i, j}, i > j, among them.
AIMLE_HD constexpr int32_t pairs_of(int32_t n) { return n * (n - 1) / 2; }
AIMLE_DEVICE int32_t pair_at(int32_t i, int32_t j) { return i * (i - 1) / 2 + j; }

struct Pair {
  int32_t i;
  int32_t j;
};
/// The inverse of pair_at.
AIMLE_DEVICE Pair pair_of(int32_t at) {
  auto i = static_cast<int32_t>((1.0f + sqrtf(1.0f + 8.0f * static_cast<float>(at))) * 0.5f);
  while (pairs_of(i) > at) --i;
  while (pairs_of(i + 1) <= at) ++i;
  return {i, at - pairs_of(i)};
}

namespace detail {

/// Levels of the recursion are numbered from 0, the whole network. `largest` is the size of the
/// largest network of a level; a network of level l + 1 is stored, with the vertices that it is
/// about to lose, in the memory of its parent.
struct Level {
  int32_t networks = 1;
  int32_t largest;
  int32_t stride;     // numbers of a network of this level
  int32_t first = 0;  // where the numbers of this level begin
  int32_t sizes = 0;  // where the sizes of this level begin

  AIMLE_HD static Level root(int32_t n) { return {1, n, pairs_of(n), 0, 0}; }
  AIMLE_HD Level next() const {
    return {3 * networks, largest - largest / 3, pairs_of(largest), first + networks * stride,
            sizes + networks};
  }
  AIMLE_HD bool last() const { return largest <= 3; }
};

/// Part d of s vertices is positions d, d + 3, ...
AIMLE_DEVICE int32_t part_size(int32_t s, int32_t d) { return (s - d + 2) / 3; }
/// The vertex at place p when part d is moved to the end; `kept` are the others.
AIMLE_DEVICE int32_t position_at(int32_t p, int32_t d, int32_t kept) {
  if (p >= kept) return d + 3 * (p - kept);
  const int32_t odd = p % 2;
  return 3 * (p / 2) + (d == 0 ? 1 + odd : d == 1 ? 2 * odd : odd);
}
/// The inverse, of vertices outside part d.
AIMLE_DEVICE int32_t place_of(int32_t position, int32_t d) {
  return position - (position - d + 2) / 3;
}

}  // namespace detail

/// Memory of one row.
struct TreeScratch {
  double* w;         // conductances, all levels
  double* t;         // their tangents, if wanted
  double* pivot;     // a network each, of the last level
  double* of_pivot;  // tangents of those
  int32_t* size;     // a network each, all levels

  struct Sizes {
    int32_t numbers;
    int32_t networks;  // of the last level
    int32_t all_networks;
    int64_t doubles(bool tangents) const {
      const int64_t w = int64_t{numbers} + networks, s = (all_networks + 1) / 2;
      return (tangents ? 2 : 1) * w + s;
    }
  };
  AIMLE_HD static Sizes sizes(int32_t n) {
    detail::Level level = detail::Level::root(n);
    while (!level.last()) level = level.next();
    return {level.first + level.networks * level.stride, level.networks,
            level.sizes + level.networks};
  }
  AIMLE_DEVICE static TreeScratch at(double* memory, int32_t n, bool tangents) {
    const Sizes s = sizes(n);
    double* const pivot = memory + (tangents ? 2 : 1) * s.numbers;
    double* const of_pivot = pivot + s.networks;
    return {memory, memory + s.numbers, pivot, of_pivot,
            reinterpret_cast<int32_t*>(tangents ? of_pivot + s.networks : of_pivot)};
  }
};

/// A row as a graph.
struct TreeRow {
  Status status;
  int32_t n;
  bool directed;
  double largest;  // logit
  bool linear;     // weights are far from underflow
  bool walkable;   // complete, and random walks are short
};

namespace detail {

/// The combined value of an edge from the row's values at its entries.
template <class T>
AIMLE_DEVICE double read_edge(const T* row, int32_t n, bool directed, int32_t i, int32_t j) {
  const auto edge = [n](int32_t a, int32_t b) { return a * (2 * n - a - 1) / 2 + (b - a - 1); };
  if (!directed) return static_cast<double>(row[edge(i, j)]);
  return static_cast<double>(row[i * (n - 1) + j - 1]) + static_cast<double>(row[j * (n - 1) + i]);
}
template <class T>
AIMLE_DEVICE void write_edge(double value, int32_t n, bool directed, int32_t i, int32_t j, T* row) {
  if (!directed) {
    row[i * (2 * n - i - 1) / 2 + (j - i - 1)] = static_cast<T>(value);
  } else {
    row[i * (n - 1) + j - 1] = row[j * (n - 1) + i] = static_cast<T>(value);
  }
}
AIMLE_DEVICE bool has_edge(const bool* mask, int32_t n, bool directed, int32_t i, int32_t j) {
  if (mask == nullptr) return true;
  if (!directed) return mask[i * (2 * n - i - 1) / 2 + (j - i - 1)];
  return mask[i * (n - 1) + j - 1] && mask[j * (n - 1) + i];
}

}  // namespace detail

/// Reads the logits of a row into scratch.w, -inf for missing edges. Ends with a sync.
template <class T, class Group>
AIMLE_DEVICE TreeRow read_tree(Group& group, int32_t n, bool directed, const T* scores,
                               const bool* mask, const TreeScratch& scratch) {
  const double inf = __builtin_huge_val();
  double smallest = inf, largest = -inf;
  bool bad = false, missing = false;
  for (int32_t at = group.rank(); at < pairs_of(n); at += group.size()) {
    const auto [j, i] = pair_of(at);
    double x = -inf;
    if (detail::has_edge(mask, n, directed, i, j)) {
      x = detail::read_edge(scores, n, directed, i, j);
      bad |= x != x || x == inf;
    }
    scratch.w[at] = x;
    missing |= x == -inf;
    if (x == -inf) continue;
    smallest = x < smallest ? x : smallest;
    largest = x > largest ? x : largest;
  }
  if (group.any(bad)) return {Status::kNaN, n, directed, 0, true, false};
  largest = group.reduce(largest, Higher{});
  smallest = group.reduce(smallest, Lower{});
  Status status = Status::kOk;
  const bool incomplete = group.any(missing);
  if (incomplete) {
    // Vertices reached from vertex 0 so far and before: 2 n flags in the memory of the pivots.
    auto* reached = reinterpret_cast<uint8_t*>(scratch.w + pairs_of(n));
    uint8_t* before = reached + n;
    for (int32_t v = group.rank(); v < n; v += group.size()) before[v] = v == 0;
    group.sync();
    bool more = true;
    while (more) {
      bool found = false;
      for (int32_t v = group.rank(); v < n; v += group.size()) {
        bool now = before[v];
        for (int32_t u = 0; u < n && !now; ++u) {
          if (u == v || !before[u]) continue;
          now = scratch.w[u < v ? pair_at(v, u) : pair_at(u, v)] != -inf;
          found |= now;
        }
        reached[v] = now;
      }
      more = group.any(found);
      uint8_t* const swept = reached;
      reached = before;
      before = swept;
    }
    bool apart = false;
    for (int32_t v = group.rank(); v < n; v += group.size()) apart |= !before[v];
    if (group.any(apart)) status = Status::kDisconnected;
  }
  const double spread = largest - smallest;
  return {status,
          n,
          directed,
          largest,
          !(spread > aimle::detail::kLinearSpread),
          n > 2 && !incomplete && spread <= aimle::detail::kWalkSpread};
}

/// Converts the logits in scratch.w to conductances. Ends with a sync.
template <class Number, class Group>
AIMLE_DEVICE void load_network(Group& group, const TreeRow& row, const TreeScratch& scratch) {
  for (int32_t at = group.rank(); at < pairs_of(row.n); at += group.size()) {
    const double x = scratch.w[at];
    scratch.w[at] = x == -__builtin_huge_val() ? Number::zero() : Number::from_log(x - row.largest);
  }
  group.sync();
}

namespace detail {

/// The conductance between two vertices after eliminating a third: the path through the third
/// (conductances a and b to them, pivot a + b) added to the existing one.
template <class Number, bool kTangents>
AIMLE_DEVICE void add_way(double a, double b, double pivot, double of_way, double& w, double& t) {
  const double added = Number::multiply(a, Number::divide(b, pivot));
  if (added == Number::zero()) return;
  w = Number::add(w, added);
  if constexpr (kTangents) t += Number::ratio(added, w) * (of_way - t);
}

/// Eliminates vertices size - 1 down to `kept` of every network of a level; `extent(c)` gives both.
template <class Number, bool kTangents, class Group, class Extent>
AIMLE_DEVICE void eliminate(Group& group, int32_t networks, int32_t stride, int32_t largest,
                            int32_t steps, const Extent& extent, double* w, double* t,
                            const TreeScratch& scratch) {
  for (int32_t step = 0; step < steps; ++step) {
    for (int32_t c = group.rank(); c < networks; c += group.size()) {
      const Pair bounds = extent(c);
      const int32_t k = bounds.i - 1 - step;  // the vertex to go
      if (k < bounds.j || k < 1) continue;
      const double* star = w + c * stride + pairs_of(k);
      double pivot = Number::zero();
      for (int32_t l = 0; l < k; ++l) pivot = Number::add(pivot, star[l]);
      scratch.pivot[c] = pivot;
      if constexpr (kTangents) {
        const double* tangent = t + c * stride + pairs_of(k);
        double of_pivot = 0;
        for (int32_t l = 0; l < k; ++l) of_pivot += Number::ratio(star[l], pivot) * tangent[l];
        scratch.of_pivot[c] = of_pivot;
      }
    }
    group.sync();
    const int32_t most = pairs_of(largest - 1 - step);
    for (int32_t e = group.rank(); e < networks * most; e += group.size()) {
      const int32_t c = e / most, at = e % most;
      const Pair bounds = extent(c);
      const int32_t k = bounds.i - 1 - step;
      if (k < bounds.j || k < 1 || at >= pairs_of(k)) continue;
      const auto [i, j] = pair_of(at);
      double* here = w + c * stride;
      const double* star = here + pairs_of(k);
      double none = 0, of_way = 0;
      double* tangents = &none;
      if constexpr (kTangents) {
        tangents = t + c * stride + at;
        const double* tangent = t + c * stride + pairs_of(k);
        of_way = tangent[i] + tangent[j] - scratch.of_pivot[c];
      }
      add_way<Number, kTangents>(star[i], star[j], scratch.pivot[c], of_way, here[at], *tangents);
    }
    group.sync();
  }
}

/// Fills all levels below the first.
template <class Number, bool kTangents, class Group>
AIMLE_DEVICE void descend(Group& group, int32_t n, const TreeScratch& scratch) {
  Level above = Level::root(n);
  if (group.rank() == 0) scratch.size[0] = static_cast<int32_t>(n);
  group.sync();
  while (!above.last()) {
    const Level level = above.next();
    for (int32_t c = group.rank(); c < level.networks; c += group.size()) {
      const int32_t s = scratch.size[above.sizes + c / 3];
      const int32_t kept = s > 3 ? s - part_size(s, c % 3) : 0;
      scratch.size[level.sizes + c] = static_cast<int32_t>(kept);
    }
    const int32_t numbers = level.networks * level.stride;
    for (int32_t e = group.rank(); e < numbers; e += group.size()) {
      const int32_t c = e / level.stride, at = e % level.stride, d = c % 3;
      const int32_t s = scratch.size[above.sizes + c / 3];
      if (s <= 3 || at >= pairs_of(s)) continue;
      const int32_t kept = s - part_size(s, d);
      const auto [p, q] = pair_of(at);
      const int32_t i = position_at(p, d, kept), j = position_at(q, d, kept);
      const int32_t from =
          above.first + c / 3 * above.stride + (i > j ? pair_at(i, j) : pair_at(j, i));
      scratch.w[level.first + e] = scratch.w[from];
      if constexpr (kTangents) scratch.t[level.first + e] = scratch.t[from];
    }
    group.sync();
    const auto extent = [&](int32_t c) -> Pair {
      return {scratch.size[above.sizes + c / 3], scratch.size[level.sizes + c]};
    };
    eliminate<Number, kTangents>(
        group, level.networks, level.stride, above.largest, part_size(above.largest, 0),
        [&](int32_t c) -> Pair {
          const Pair bounds = extent(c);
          return bounds.i > 3 ? bounds : Pair{0, 0};
        },
        scratch.w + level.first, scratch.t + level.first, scratch);
    above = level;
  }
}

/// The conductance between vertices i and j, and its tangent.
template <class Number, bool kTangents>
AIMLE_DEVICE void between(const TreeScratch& scratch, int32_t n, int32_t i, int32_t j, double& w,
                          double& t) {
  Level level = Level::root(n);
  int32_t network = 0, s = n;
  while (s > 3) {
    int32_t d = 0;
    while (i % 3 == d || j % 3 == d) ++d;
    i = place_of(i, d);
    j = place_of(j, d);
    s -= part_size(s, d);
    network = 3 * network + d;
    level = level.next();
  }
  const int32_t first = level.first + network * level.stride;
  const auto at = [&](int32_t a, int32_t b) {
    return first + (a > b ? pair_at(a, b) : pair_at(b, a));
  };
  w = scratch.w[at(i, j)];
  if constexpr (kTangents) t = scratch.t[at(i, j)];
  if (s < 3) return;
  const int32_t third = 3 - i - j;
  const double a = scratch.w[at(i, third)], b = scratch.w[at(j, third)];
  const double pivot = Number::add(a, b);
  double of_way = 0;
  if constexpr (kTangents) {
    const double of_a = scratch.t[at(i, third)], of_b = scratch.t[at(j, third)];
    of_way = of_a + of_b - (Number::ratio(a, pivot) * of_a + Number::ratio(b, pivot) * of_b);
  }
  if (pivot == Number::zero()) return;
  add_way<Number, kTangents>(a, b, pivot, of_way, w, t);
}

}  // namespace detail

/// Marginals [size] and, with tangents, Cov(z) v [size], each if not null, of a row whose logits
/// are in scratch.w. Ends with a sync.
template <class Number, bool kTangents, class T, class Group>
AIMLE_DEVICE void evaluate_tree(Group& group, const TreeRow& row, const T* v,
                                const TreeScratch& scratch, T* mu, T* covariance) {
  const int32_t n = row.n;
  load_network<Number>(group, row, scratch);
  if constexpr (kTangents) {
    for (int32_t at = group.rank(); at < pairs_of(n); at += group.size()) {
      const auto [j, i] = pair_of(at);
      const bool there = scratch.w[at] != Number::zero();
      scratch.t[at] = there ? detail::read_edge(v, n, row.directed, i, j) : 0.0;
    }
    group.sync();
  }
  detail::descend<Number, kTangents>(group, n, scratch);
  for (int32_t at = group.rank(); at < pairs_of(n); at += group.size()) {
    const auto [j, i] = pair_of(at);
    const double own = scratch.w[at];
    double p = 0, product = 0;
    if (own != Number::zero()) {
      double w = 0, along = 0;
      detail::between<Number, kTangents>(scratch, n, j, i, w, along);
      p = Number::ratio(own, w);
      p = p < 1 ? p : 1.0;
      if constexpr (kTangents) product = p * (scratch.t[at] - along);
    }
    if (mu != nullptr) detail::write_edge(p, n, row.directed, i, j, mu);
    if (covariance != nullptr) detail::write_edge(product, n, row.directed, i, j, covariance);
  }
  group.sync();
}

/// A(x) of a row whose logits are in scratch.w, which is overwritten. Ends with a sync.
template <class Number, class Group>
AIMLE_DEVICE double log_partition_of_tree(Group& group, const TreeRow& row,
                                          const TreeScratch& scratch) {
  if (row.n == 1) return 0;
  load_network<Number>(group, row, scratch);
  double sum = static_cast<double>(row.n - 1) * row.largest;
  for (int32_t size = row.n; size > 1; --size) {
    detail::eliminate<Number, false>(
        group, 1, 0, size, 1,
        [size](int32_t) -> Pair {
          return {size, size - 1};
        },
        scratch.w, scratch.w, scratch);
    sum += Number::log(scratch.pivot[0]);
    group.sync();
  }
  return sum;
}

}  // namespace aimle::cuda
