// Marginals and covariances of spanning trees by a group of threads (exact/tree_distribution.h has
// the equations, exact/tree_row.h the arithmetic).
//
// The conductance between every two vertices after eliminating all others comes from the CPU's
// recursion: split the vertices into three parts, eliminate each part in turn and recurse on the
// other two. Here it runs level by level. A level has 3^l networks, and all of them eliminate their
// vertices in step: pivots by one thread per network, then stars are replaced by meshes by one
// thread per pair, with a sync after each. Networks of three vertices are finished in closed form.
// Every pair then follows its own path down: at each level the first part that contains neither of
// its vertices.
//
// O(n^3) work on O(n^2.7) numbers, which are counted in 32 bits: up to kMaxTreeVertices vertices.
// The CPU visits the same networks depth first, with O(n^2) numbers (exact/network.h), which is
// faster for a single thread. The bits are the same.
#pragma once

#include <cstdint>

#include "aimle/exact/tree_row.h"
#include "aimle/exact/tree_samples.h"

namespace aimle::cuda {

using aimle::detail::OneThread;
using exact_row::EdgeAt;
using exact_row::for_each_pair;
using exact_row::Pair;
using exact_row::pair_at;
using exact_row::pair_of;
using exact_row::pair_of_ends;
using exact_row::pairs_of;
using exact_row::Star;
using exact_row::TreeRow;
using exact_row::TreeSampleScratch;

inline constexpr int64_t kMaxTreeVertices = 1000;

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
AIMLE_EITHER int32_t part_size(int32_t s, int32_t d) { return (s - d + 2) / 3; }
/// The vertex at place p when part d is moved to the end; `kept` are the others.
AIMLE_EITHER int32_t position_at(int32_t p, int32_t d, int32_t kept) {
  if (p >= kept) return d + 3 * (p - kept);
  const int32_t odd = p % 2;
  return 3 * (p / 2) + (d == 0 ? 1 + odd : d == 1 ? 2 * odd : odd);
}
/// The inverse, of vertices outside part d.
AIMLE_EITHER int32_t place_of(int32_t position, int32_t d) {
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

  /// For reading, before any level below the first: memory of these.
  AIMLE_EITHER uint8_t* state(int32_t n) const {
    return reinterpret_cast<uint8_t*>(w + pairs_of(n));
  }

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
  AIMLE_EITHER static TreeScratch at(double* memory, int32_t n, bool tangents) {
    const Sizes s = sizes(n);
    double* const pivot = memory + (tangents ? 2 : 1) * s.numbers;
    double* const of_pivot = pivot + s.networks;
    return {memory, memory + s.numbers, pivot, of_pivot,
            reinterpret_cast<int32_t*>(tangents ? of_pivot + s.networks : of_pivot)};
  }
};

namespace detail {

/// Eliminates vertices size - 1 down to `kept` of every network of a level; `extent(c)` gives both.
template <class Number, bool kTangents, class Group, class Extent>
AIMLE_EITHER void eliminate(Group& group, int32_t networks, int32_t stride, int32_t largest,
                            int32_t steps, const Extent& extent, double* w, double* t,
                            const TreeScratch& scratch) {
  using LastStar = Star<Number, kTangents>;
  for (int32_t step = 0; step < steps; ++step) {
    for (int32_t c = group.rank(); c < networks; c += group.size()) {
      const Pair bounds = extent(c);
      const int32_t k = bounds.i - 1 - step;  // the vertex to go
      if (k < bounds.j || k < 1) continue;
      const int32_t first = c * stride + pairs_of(k);
      OneThread alone;
      const LastStar star = LastStar::of(alone, w + first, t + first, k);
      scratch.pivot[c] = star.pivot;
      if constexpr (kTangents) scratch.of_pivot[c] = star.of_pivot;
    }
    group.sync();
    const int32_t most = pairs_of(largest - 1 - step);
    for (int32_t e = group.rank(); e < networks * most; e += group.size()) {
      const int32_t c = e / most, at = e % most;
      const Pair bounds = extent(c);
      const int32_t k = bounds.i - 1 - step;
      if (k < bounds.j || k < 1 || at >= pairs_of(k)) continue;
      const auto [i, j] = pair_of(at);
      const int32_t first = c * stride + pairs_of(k);
      const LastStar star{w + first, t + first, scratch.pivot[c],
                          kTangents ? scratch.of_pivot[c] : 0.0};
      star.add_way(star.ways_on(w[first + i], t[first + i]), j, w[c * stride + at],
                   t[c * stride + at]);
    }
    group.sync();
  }
}

/// Fills all levels below the first.
template <class Number, bool kTangents, class Group>
AIMLE_EITHER void descend(Group& group, int32_t n, const TreeScratch& scratch) {
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
      const int32_t from = above.first + c / 3 * above.stride + pair_of_ends(i, j);
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
        scratch.w + level.first, (kTangents ? scratch.t : scratch.w) + level.first, scratch);
    above = level;
  }
}

/// The conductance between vertices i and j, and its tangent.
template <class Number, bool kTangents>
AIMLE_EITHER void between(const TreeScratch& scratch, int32_t n, int32_t i, int32_t j, double& w,
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
  const auto at = [&](int32_t a, int32_t b) { return first + pair_of_ends(a, b); };
  w = scratch.w[at(i, j)];
  if constexpr (kTangents) t = scratch.t[at(i, j)];
  if (s < 3) return;
  const int32_t third = 3 - i - j;  // i > j, as in the whole network
  const double ways[] = {scratch.w[at(j, third)], scratch.w[at(i, third)]};
  double of_ways[] = {0, 0};
  if constexpr (kTangents) {
    of_ways[0] = scratch.t[at(j, third)];
    of_ways[1] = scratch.t[at(i, third)];
  }
  OneThread alone;
  const auto star = Star<Number, kTangents>::of(alone, ways, of_ways, 2);
  star.add_way(star.ways_on(ways[1], of_ways[1]), 0, w, t);
}

}  // namespace detail

/// Marginals [size] and, with tangents, Cov(z) v [size], each if not null, of a row whose
/// conductances are in scratch.w, and remain there. Ends with a sync.
template <class Number, bool kTangents, class T, class Group>
AIMLE_EITHER void evaluate_tree(Group& group, const TreeRow& row, const T* v,
                                const TreeScratch& scratch, T* mu, T* covariance) {
  const int32_t n = row.n;
  if constexpr (kTangents) {
    for_each_pair(group, n, [&](int32_t at, int32_t j, int32_t i) {
      const bool exists = scratch.w[at] != Number::zero();
      scratch.t[at] = exists ? EdgeAt::of(n, row.directed, i, j).read(v) : 0.0;
    });
    group.sync();
  }
  detail::descend<Number, kTangents>(group, n, scratch);
  for_each_pair(group, n, [&](int32_t at, int32_t j, int32_t i) {
    const double own = scratch.w[at];
    double p = 0, product = 0;
    if (own != Number::zero()) {
      double w = 0, along = 0;
      detail::between<Number, kTangents>(scratch, n, j, i, w, along);
      p = Number::ratio(own, w);
      p = p < 1 ? p : 1.0;
      if constexpr (kTangents) product = p * (scratch.t[at] - along);
    }
    const EdgeAt edge = EdgeAt::of(n, row.directed, i, j);
    if (mu != nullptr) edge.write(p, mu);
    if (covariance != nullptr) edge.write(product, covariance);
  });
  group.sync();
}

/// Sorts the edges of a row whose logits are in scratch.w and returns their number; ties as listed
/// by i < j. Ends with a sync.
template <class Group>
AIMLE_EITHER int32_t sort_edges(Group& group, int32_t n, const TreeSampleScratch& scratch) {
  const double none = -__builtin_huge_val();
  double edges = 0;
  for_each_pair(group, n, [&](int32_t at, int32_t j, int32_t i) {
    const double x = scratch.w[at];
    if (x == none) return;
    int32_t before = 0;
    for (int32_t b = 1, other = 0; b < n; ++b) {
      for (int32_t a = 0; a < b; ++a, ++other) {
        const double y = scratch.w[other];
        before += y > x || (y == x && (a < i || (a == i && b < j)));
      }
    }
    scratch.order[before] = at;
    edges += 1;
  });
  edges = group.reduce(edges, Plus{});
  group.sync();
  return static_cast<int32_t>(edges);
}

/// Sample s of a row whose logits are in scratch.w, as exact_row::sample_tree. Ends with a sync.
template <class T, class Group>
AIMLE_EITHER void sample_tree(Group& group, const TreeRow& row, const TreeSampleScratch& scratch,
                              Key key, int64_t b, int64_t s, T* z) {
  const int32_t edges = sort_edges(group, row.n, scratch);
  if (row.linear) {
    exact_row::load_network<aimle::detail::Linear>(group, row, scratch.w);
  } else {
    exact_row::load_network<aimle::detail::Logarithmic>(group, row, scratch.w);
  }
  aimle::detail::Walks walks{};
  if (row.walkable) walks = exact_row::start_walks(group, row.n, scratch);
  exact_row::sample_tree(group, row, edges, walks, scratch, key, b, s, z);
}

}  // namespace aimle::cuda
