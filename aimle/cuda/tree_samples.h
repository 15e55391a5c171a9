// Random spanning trees by a group of threads, one tree per group (exact/tree_distribution.h has
// both methods, which use the same uniform numbers).
//
// A walk is executed by one thread. Edge by edge, the group keeps the network of what can still be
// chosen, whose vertices are the parts of the tree so far: all vertices except the ends of the edge
// are eliminated in a copy of it, as in tree_distribution.h. An edge that is taken merges two
// vertices; for one that is rejected, the sum of the rest between its ends is computed again,
// because nothing is ever subtracted.
#pragma once

#include "aimle/cuda/tree_distribution.h"
#include "aimle/exact/uniform.h"
#include "aimle/exact/wilson.h"

namespace aimle::cuda {

/// Memory of one tree.
struct TreeSampleScratch {
  double* w;           // [pairs]: logits, then conductances
  double* left;        // [pairs]: what can still be chosen between parts, by their first vertices
  double* copy;        // [pairs]: of that, without vertices that were eliminated
  double* cumulative;  // [n, n]: for walks, in the memory of the last two
  double* pivot;       // [1]
  int32_t* order;      // [pairs]: the edges, the heaviest first
  int32_t* part;       // [n]: the first vertex of a vertex's part
  int32_t* place;      // [n]: first vertices of all parts, the ends of an edge before the others
  uint8_t* in_tree;    // [n]

  AIMLE_HD static int64_t doubles(int64_t n) {
    const int64_t pairs = n * (n - 1) / 2;
    return pairs + n * n + 1 + (pairs + 2 * n + 1) / 2 + (n + 7) / 8;
  }
  AIMLE_DEVICE static TreeSampleScratch at(double* memory, int32_t n) {
    const int32_t pairs = pairs_of(n);
    double* const left = memory + pairs;
    double* const pivot = left + int64_t{n} * n;
    auto* const order = reinterpret_cast<int32_t*>(pivot + 1);
    auto* const in_tree = reinterpret_cast<uint8_t*>(pivot + 1 + (pairs + 2 * n + 1) / 2);
    return {memory, left,          left + pairs,      left,   pivot,
            order,  order + pairs, order + pairs + n, in_tree};
  }
  /// For reading and eliminating.
  AIMLE_DEVICE TreeScratch network() const { return {w, nullptr, pivot, nullptr, nullptr}; }
};

namespace detail {

template <class Number>
struct Add {
  AIMLE_DEVICE double operator()(double a, double b) const { return Number::add(a, b); }
};

AIMLE_DEVICE int32_t pair_of_ends(int32_t i, int32_t j) {
  return i > j ? pair_at(i, j) : pair_at(j, i);
}

/// Sorts the edges of a row whose logits are in scratch.w and returns their number; ties as listed
/// by i < j. Ends with a sync.
template <class Group>
AIMLE_DEVICE int32_t sort_edges(Group& group, int32_t n, const TreeSampleScratch& scratch) {
  const double none = -__builtin_huge_val();
  double edges = 0;
  for (int32_t at = group.rank(); at < pairs_of(n); at += group.size()) {
    const double x = scratch.w[at];
    if (x == none) continue;
    const auto [j, i] = pair_of(at);
    int32_t before = 0;
    for (int32_t b = 1, other = 0; b < n; ++b) {
      for (int32_t a = 0; a < b; ++a, ++other) {
        const double y = scratch.w[other];
        before += y > x || (y == x && (a < i || (a == i && b < j)));
      }
    }
    scratch.order[before] = at;
    edges += 1;
  }
  edges = group.reduce(edges, Plus{});
  group.sync();
  return static_cast<int32_t>(edges);
}

/// The conductance between parts a and b after eliminating all others. Ends with a sync.
template <class Number, class Group>
AIMLE_DEVICE double between_parts(Group& group, int32_t n, int32_t parts, int32_t a, int32_t b,
                                  const TreeSampleScratch& scratch) {
  if (group.rank() == 0) {
    scratch.place[0] = a;
    scratch.place[1] = b;
    for (int32_t v = 0, next = 2; v < n; ++v) {
      if (scratch.part[v] == v && v != a && v != b) scratch.place[next++] = v;
    }
  }
  group.sync();
  for (int32_t at = group.rank(); at < pairs_of(parts); at += group.size()) {
    const auto [p, q] = pair_of(at);
    scratch.copy[at] = scratch.left[pair_of_ends(scratch.place[p], scratch.place[q])];
  }
  group.sync();
  eliminate<Number, false>(
      group, 1, 0, parts, parts - 2,
      [parts](int32_t) -> Pair {
        return {parts, 2};
      },
      scratch.copy, scratch.copy, scratch.network());
  const double between = scratch.copy[0];
  group.sync();
  return between;
}

/// Merges part b into part a. Ends with a sync.
template <class Number, class Group>
AIMLE_DEVICE void join_parts(Group& group, int32_t n, int32_t a, int32_t b,
                             const TreeSampleScratch& scratch) {
  for (int32_t v = group.rank(); v < n; v += group.size()) {
    if (scratch.part[v] == b) {
      scratch.part[v] = a;
    } else if (scratch.part[v] == v && v != a) {
      double& to_a = scratch.left[pair_of_ends(a, v)];
      to_a = Number::add(to_a, scratch.left[pair_of_ends(b, v)]);
    }
  }
  group.sync();
}

/// Keeps only edges from number `first` on between parts a and b. Ends with a sync.
template <class Number, class Group>
AIMLE_DEVICE void refuse_edges(Group& group, int32_t first, int32_t edges, int32_t a, int32_t b,
                               const TreeSampleScratch& scratch) {
  double sum = Number::zero();
  for (int32_t e = first + group.rank(); e < edges; e += group.size()) {
    const int32_t at = scratch.order[e];
    const auto [j, i] = pair_of(at);
    const int32_t from = scratch.part[i], to = scratch.part[j];
    if ((from == a && to == b) || (from == b && to == a)) sum = Number::add(sum, scratch.w[at]);
  }
  sum = group.reduce(sum, Add<Number>{});
  if (group.rank() == 0) scratch.left[pair_of_ends(a, b)] = sum;
  group.sync();
}

/// One tree, of a row whose conductances are in scratch.w and whose edges are sorted; one thread
/// calls chosen(i, j) for every edge, and uniform(i, j) returns the edge's number.
template <class Number, class Group, class Uniform, class Chosen>
AIMLE_DEVICE void take_edges(Group& group, int32_t n, int32_t edges,
                             const TreeSampleScratch& scratch, const Uniform& uniform,
                             const Chosen& chosen) {
  for (int32_t v = group.rank(); v < n; v += group.size()) scratch.part[v] = v;
  for (int32_t at = group.rank(); at < pairs_of(n); at += group.size()) {
    scratch.left[at] = scratch.w[at];
  }
  group.sync();
  int32_t parts = n;
  for (int32_t e = 0; parts > 1 && e < edges; ++e) {
    const int32_t at = scratch.order[e];
    const auto [j, i] = pair_of(at);
    const int32_t a = scratch.part[i], b = scratch.part[j];
    if (a == b) continue;
    const double between = between_parts<Number>(group, n, parts, a, b, scratch);
    if (uniform(i, j) < Number::ratio(scratch.w[at], between)) {
      join_parts<Number>(group, n, a, b, scratch);
      --parts;
      if (group.rank() == 0) chosen(i, j);
    } else {
      refuse_edges<Number>(group, e + 1, edges, a, b, scratch);
    }
  }
}

/// One tree by one thread; returns false to all threads, with nothing chosen, if the walk was too
/// long. The conductances are in scratch.w. Ends with a sync.
template <class Group, class Uniform, class Chosen>
AIMLE_DEVICE bool walk(Group& group, int32_t n, const TreeSampleScratch& scratch,
                       const Uniform& uniform, const Chosen& chosen) {
  aimle::detail::Walks walks{
      .n = n, .cumulative = scratch.cumulative, .next = scratch.place, .in_tree = scratch.in_tree};
  for (int32_t i = group.rank(); i < n; i += group.size()) scratch.cumulative[i * n + i] = 0;
  for (int32_t at = group.rank(); at < pairs_of(n); at += group.size()) {
    const auto [j, i] = pair_of(at);
    walks.set_edge(i, j, scratch.w[at]);
  }
  group.sync();
  for (int32_t i = group.rank(); i < n; i += group.size()) walks.finish_row(i);
  group.sync();
  bool arrived = false;
  if (group.rank() == 0) {
    walks.start();
    arrived = walks.draw(aimle::detail::kWalkStepsPerVertex * n, uniform, chosen);
  }
  return group.any(arrived);
}

}  // namespace detail

/// Sample s of a row whose logits are in scratch.w, z [size] of zeros; instance b of the key. Ends
/// with a sync.
template <class T, class Group>
AIMLE_DEVICE void sample_tree(Group& group, const TreeRow& row, const TreeSampleScratch& scratch,
                              Key key, int64_t b, int64_t s, T* z) {
  const int32_t n = row.n;
  const auto choose = [&](int64_t i, int64_t j) {
    const auto low = static_cast<int32_t>(i < j ? i : j), high = static_cast<int32_t>(i + j - low);
    detail::write_edge(1, n, row.directed, low, high, z);
  };
  const int32_t edges = detail::sort_edges(group, n, scratch);
  if (row.linear) {
    load_network<aimle::detail::Linear>(group, row, scratch.network());
  } else {
    load_network<aimle::detail::Logarithmic>(group, row, scratch.network());
  }
  if (row.walkable) {
    const auto of_step = [&](int64_t step) { return uniform(key, b, s, pairs_of(n) + step); };
    if (detail::walk(group, n, scratch, of_step, choose)) return;
  }
  const auto of_edge = [&](int64_t i, int64_t j) {
    return uniform(key, b, s, SpanningTree::edge(i, j, n));
  };
  if (row.linear) {
    detail::take_edges<aimle::detail::Linear>(group, n, edges, scratch, of_edge, choose);
  } else {
    detail::take_edges<aimle::detail::Logarithmic>(group, n, edges, scratch, of_edge, choose);
  }
  group.sync();
}

}  // namespace aimle::cuda
