// Random spanning trees by a group of threads, one tree per group, on both devices;
// tree_distribution.h has both methods, which use the same uniform numbers.
//
// A walk is executed by one thread. Edge by edge, the group keeps the network of what can still be
// chosen, whose vertices are the parts of the tree so far: all vertices except the ends of the edge
// are eliminated in a copy of it. An edge that is taken merges two vertices; for one that is
// rejected, the sum of the rest between its ends is computed again, because nothing is ever
// subtracted.
#pragma once

#include "aimle/exact/tree_row.h"
#include "aimle/exact/uniform.h"
#include "aimle/exact/wilson.h"
#include "aimle/map/spanning_tree.h"

namespace aimle::exact_row {

/// Memory of one tree.
struct TreeSampleScratch {
  double* w;           // [pairs]: logits, then conductances, then those not rejected
  double* left;        // [pairs]: what can still be chosen between parts, by their first vertices
  double* copy;        // [pairs]: of that, without vertices that were eliminated
  double* cumulative;  // [n, n]: for walks, in the memory of the last two
  double* pivots;      // [2]
  int32_t* order;      // [pairs]: the edges, the heaviest first
  int32_t* part;       // [n]: the first vertex of a vertex's part
  int32_t* place;      // [n]: first vertices of all parts, the ends of an edge before the others
  uint8_t* state;      // [n]: of reading, and whether a vertex is in the tree

  AIMLE_HD static int64_t doubles(int64_t n) {
    const int64_t pairs = n * (n - 1) / 2;
    return pairs + n * n + 2 + (pairs + 2 * n + 1) / 2 + (n + 7) / 8;
  }
  AIMLE_EITHER static TreeSampleScratch at(double* memory, int32_t n) {
    const int32_t pairs = pairs_of(n);
    double* const left = memory + pairs;
    double* const pivots = left + int64_t{n} * n;
    auto* const order = reinterpret_cast<int32_t*>(pivots + 2);
    auto* const state = reinterpret_cast<uint8_t*>(pivots + 2 + (pairs + 2 * n + 1) / 2);
    return {memory, left,          left + pairs,      left, pivots,
            order,  order + pairs, order + pairs + n, state};
  }
};

namespace tree {

/// The conductance between parts a and b after eliminating all others. Ends with a sync.
template <class Number, class Group>
AIMLE_EITHER double between_parts(Group& group, int32_t n, int32_t parts, int32_t a, int32_t b,
                                  const TreeSampleScratch& scratch) {
  if (group.rank() == 0) {
    scratch.place[0] = a;
    scratch.place[1] = b;
    for (int32_t v = 0, next = 2; v < n; ++v) {
      if (scratch.part[v] == v && v != a && v != b) scratch.place[next++] = v;
    }
  }
  group.sync();
  for_each_pair(
      group, parts, [&](int32_t p) { return scratch.place[p]; },
      [&](int32_t from, int32_t at, int32_t, int32_t q) {
        scratch.copy[at] = scratch.left[pair_of_ends(from, scratch.place[q])];
      });
  group.sync();
  for (int32_t k = parts - 1; k >= 2; --k) {
    eliminate_last<Number, false>(group, k, scratch.copy, scratch.copy, scratch.pivots);
  }
  const double between = scratch.copy[0];
  group.sync();
  return between;
}

/// Merges part b into part a. Ends with a sync.
template <class Number, class Group>
AIMLE_EITHER void join_parts(Group& group, int32_t n, int32_t a, int32_t b,
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

/// Rejects the edge at `refused` between parts a and b. The sum of the others is added up for every
/// vertex of a and then over these, in the same order for any number of threads. Ends with a sync.
template <class Number, class Group>
AIMLE_EITHER void refuse_edge(Group& group, int32_t n, int32_t refused, int32_t a, int32_t b,
                              const TreeSampleScratch& scratch) {
  double* const sums = scratch.copy;
  for (int32_t i = group.rank(); i < n; i += group.size()) {
    if (scratch.part[i] != a) continue;
    double sum = Number::zero();
    for (int32_t j = 0; j < n; ++j) {
      if (scratch.part[j] != b) continue;
      const int32_t at = pair_of_ends(i, j);
      if (at != refused) sum = Number::add(sum, scratch.w[at]);
    }
    sums[i] = sum;
  }
  group.sync();
  if (group.rank() == 0) {
    double sum = Number::zero();
    for (int32_t i = 0; i < n; ++i) {
      if (scratch.part[i] == a) sum = Number::add(sum, sums[i]);
    }
    scratch.left[pair_of_ends(a, b)] = sum;
    scratch.w[refused] = Number::zero();
  }
  group.sync();
}

/// One tree, edge by edge; one thread calls chosen(i, j) for every edge, and uniform(i, j) returns
/// the edge's number. Ends with a sync.
template <class Number, class Group, class Uniform, class Chosen>
AIMLE_EITHER void take_edges(Group& group, int32_t n, int32_t edges,
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
      refuse_edge<Number>(group, n, at, a, b, scratch);
    }
  }
  group.sync();
}

/// One tree by one thread; returns false to all threads, with nothing chosen, if the walk was too
/// long. Ends with a sync.
template <class Group, class Uniform, class Chosen>
AIMLE_EITHER bool walk(Group& group, const aimle::detail::Walks& walks, const Uniform& uniform,
                       const Chosen& chosen) {
  bool arrived = false;
  if (group.rank() == 0) {
    arrived = walks.draw(aimle::detail::kWalkStepsPerVertex * walks.n, uniform, chosen);
  }
  return group.any(arrived);
}

}  // namespace tree

/// The walks of a row whose conductances are in scratch.w. Ends with a sync.
template <class Group>
AIMLE_EITHER aimle::detail::Walks start_walks(Group& group, int32_t n,
                                              const TreeSampleScratch& scratch) {
  aimle::detail::Walks walks{
      .n = n, .cumulative = scratch.cumulative, .next = scratch.place, .in_tree = scratch.state};
  for (int32_t i = group.rank(); i < n; i += group.size()) scratch.cumulative[i * n + i] = 0;
  for_each_pair(group, n,
                [&](int32_t at, int32_t j, int32_t i) { walks.set_edge(i, j, scratch.w[at]); });
  group.sync();
  for (int32_t i = group.rank(); i < n; i += group.size()) walks.finish_row(i);
  group.sync();
  walks.start();
  return walks;
}

/// Sample s of a row whose conductances are in scratch.w, whose `edges` edges are sorted, and whose
/// walks were started if it is walkable; z [size] of zeros; instance b of the key. Returns whether
/// a walk sufficed; otherwise scratch.w was overwritten. Ends with a sync.
template <class T, class Group>
AIMLE_EITHER bool sample_tree(Group& group, const TreeRow& row, int32_t edges,
                              const aimle::detail::Walks& walks, const TreeSampleScratch& scratch,
                              Key key, int64_t b, int64_t s, T* z) {
  const int32_t n = row.n;
  const auto choose = [&](int64_t i, int64_t j) {
    const auto low = static_cast<int32_t>(i < j ? i : j), high = static_cast<int32_t>(i + j - low);
    EdgeAt::of(n, row.directed, low, high).write(1, z);
  };
  // Number j of a sample belongs to edge j, and numbers after the last edge to the steps of walks.
  if (row.walkable) {
    const auto of_step = [&](int64_t step) { return uniform(key, b, s, pairs_of(n) + step); };
    if (tree::walk(group, walks, of_step, choose)) return true;
  }
  const auto of_edge = [&](int64_t i, int64_t j) {
    return uniform(key, b, s, SpanningTree::edge(i, j, n));
  };
  if (row.linear) {
    tree::take_edges<aimle::detail::Linear>(group, n, edges, scratch, of_edge, choose);
  } else {
    tree::take_edges<aimle::detail::Logarithmic>(group, n, edges, scratch, of_edge, choose);
  }
  return false;
}

}  // namespace aimle::exact_row
