// GraphPath and DagPath by a group of threads: distances by sweeps over all vertices, then the walk
// backwards (map/graph_path.h has the problem and the tie rule).
//
// A sweep replaces every d(v) by min over arcs a into v of fl(d(tail_a) + c(entry_a)) if that is
// less. Rounding is monotone, so that in any order d ends as the smallest rounded sum along paths,
// bit for bit as on the CPU (cuda/grid_path.h has the argument). The number of sweeps, O(arcs /
// threads) each, is that of the arcs of the longest path; with costs >= 0, paths beyond the
// target's distance are not needed. In shared memory a sweep reads one array and writes another;
// large graphs are swept in place, where a thread reads what another wrote in this sweep or in the
// previous one.
//
// Thread 0 walks backwards. At the first vertex with several tight arcs all threads count the arcs
// from the source over tight ones, and the walk continues by those counts.
#pragma once

#include <cstdint>

#include "aimle/cuda/group.h"
#include "aimle/map/graph_path.h"

namespace aimle::cuda {

/// The sizes of a problem.
struct GraphSize {
  int32_t vertices;
  int32_t edges;
  int32_t arcs;
  bool refuse_negative;
};

template <bool kAcyclic>
GraphSize graph_size(const PathOverGraph<kAcyclic>& solver) {
  return {
      .vertices = static_cast<int32_t>(solver.vertices),
      .edges = static_cast<int32_t>(solver.edges),
      .arcs = static_cast<int32_t>(solver.arc_count()),
      .refuse_negative = !kAcyclic && solver.negative == PathOverGraph<kAcyclic>::Negative::kError};
}

/// Memory of one row.
template <class T>
struct GraphScratch {
  T* cost;          // [edges]
  T* distance;      // [vertices]
  T* other;         // [vertices], for sweeps that are not in place
  int32_t* counts;  // [vertices], arcs from the source
  int32_t* first;   // [vertices + 1], of the arcs that enter
  int32_t* tail;    // [arcs]
  int32_t* entry;   // [arcs]

  static int64_t bytes(const GraphSize& size) {
    const int64_t numbers = int64_t{size.edges} + 2 * int64_t{size.vertices};
    const int64_t integers = 2 * int64_t{size.vertices} + 1 + 2 * int64_t{size.arcs};
    return (numbers * static_cast<int64_t>(sizeof(T)) + 4 * integers + 15) / 16 * 16;
  }
  AIMLE_DEVICE static GraphScratch at(void* memory, const GraphSize& size) {
    T* cost = static_cast<T*>(memory);
    T* distance = cost + size.edges;
    T* other = distance + size.vertices;
    auto* counts = reinterpret_cast<int32_t*>(other + size.vertices);
    int32_t* first = counts + size.vertices;
    int32_t* tail = first + size.vertices + 1;
    return {cost, distance, other, counts, first, tail, tail + size.arcs};
  }
};

namespace detail {

template <class T>
AIMLE_DEVICE T unreached() {
  return static_cast<T>(__builtin_huge_val());
}

AIMLE_DEVICE bool is_below(int64_t number, int32_t limit) {
  return static_cast<uint64_t>(number) < static_cast<uint64_t>(limit);
}

/// Copies the graph, and returns whether this thread's part is valid.
template <class T, class Group>
AIMLE_DEVICE bool read_graph(Group& group, const GraphSize& size, const int64_t* data,
                             const GraphScratch<T>& scratch) {
  const int64_t* offsets = data + 2;
  const int64_t* tails = offsets + size.vertices + 1;
  const int64_t* entries = tails + size.arcs;
  bool good = is_below(data[0], size.vertices) && is_below(data[1], size.vertices) &&
              offsets[0] == 0 && offsets[size.vertices] == size.arcs;
  for (int32_t v = group.rank(); v <= size.vertices; v += group.size()) {
    if (v < size.vertices) good = good && offsets[v] <= offsets[v + 1];
    scratch.first[v] = static_cast<int32_t>(offsets[v]);
  }
  for (int32_t a = group.rank(); a < size.arcs; a += group.size()) {
    good = good && is_below(tails[a], size.vertices) && is_below(entries[a], size.edges);
    scratch.tail[a] = static_cast<int32_t>(tails[a]);
    scratch.entry[a] = static_cast<int32_t>(entries[a]);
  }
  return good;
}

/// Whether all arcs into this thread's vertices come from lower ones.
template <class T, class Group>
AIMLE_DEVICE bool is_numbered(Group& group, const GraphSize& size, const GraphScratch<T>& scratch) {
  bool good = true;
  for (int32_t v = group.rank(); v < size.vertices; v += group.size()) {
    for (int32_t a = scratch.first[v]; a < scratch.first[v + 1]; ++a) {
      good = good && scratch.tail[a] < v;
    }
  }
  return good;
}

template <bool kAcyclic, class T, class Group, class Scores>
AIMLE_DEVICE Status read_row(Group& group, const GraphSize& size, const Scores& scores,
                             const bool* mask, const int64_t* data,
                             const GraphScratch<T>& scratch) {
  constexpr uint32_t kNegative = 1, kBad = 2, kNaN = 3;
  uint32_t worst = 0;
  const auto saw = [&](uint32_t fault) { worst = worst > fault ? worst : fault; };
  scores.for_each(group.rank(), group.size(), [&](int64_t j, T x) {
    if (mask != nullptr && !mask[j]) x = kAcyclic ? -unreached<T>() : unreached<T>();
    if (x != x) saw(kNaN);
    if (x < T(0) && size.refuse_negative) saw(kNegative);
    scratch.cost[j] = kAcyclic ? -x : (x > T(0) ? x : T(0));
  });
  if (!read_graph(group, size, data, scratch)) saw(kBad);
  worst = group.max(worst);
  if (kAcyclic && worst == 0) {
    worst = group.max(is_numbered(group, size, scratch) ? uint32_t{0} : kBad);
  }
  if (worst == kNaN) return Status::kNaN;
  if (worst == kBad) return Status::kBadData;
  return worst == kNegative ? Status::kNegativeCost : Status::kOk;
}

/// Sweeps over all vertices until nothing relevant changes: values up to that of vertex `limiting`
/// (< 0: all). `update(values, v)` returns the new value of v, at most the old one.
template <bool kInPlace, class Value, class Group, class Update>
AIMLE_DEVICE void sweep_graph(Group& group, int32_t vertices, int32_t limiting, Value*& values,
                              Value*& other, const Update& update) {
  bool again = true;
  while (again) {
    const Value limit = values[limiting < 0 ? 0 : limiting];
    bool changed = false;
    for (int32_t v = group.rank(); v < vertices; v += group.size()) {
      const Value before = values[v], after = update(values, v);
      changed |= after < before && (limiting < 0 || after <= limit);
      if constexpr (kInPlace) {
        if (after < before) values[v] = after;
      } else {
        other[v] = after;
      }
    }
    again = group.any(changed);
    if constexpr (!kInPlace) {
      Value* const swept = other;
      other = values;
      values = swept;
    }
  }
}

/// Fills `scratch.distance`; `scratch.other` is free afterwards.
template <bool kAcyclic, bool kInPlace, class T, class Group>
AIMLE_DEVICE void fill_distances(Group& group, const GraphSize& size, int32_t source,
                                 int32_t target, GraphScratch<T>& scratch) {
  for (int32_t v = group.rank(); v < size.vertices; v += group.size()) {
    scratch.distance[v] = v == source ? T(0) : unreached<T>();
  }
  group.sync();
  sweep_graph<kInPlace>(group, size.vertices, kAcyclic ? -1 : target, scratch.distance,
                        scratch.other, [&](const T* distance, int32_t v) {
                          T best = distance[v];
                          for (int32_t a = scratch.first[v]; a < scratch.first[v + 1]; ++a) {
                            const T through =
                                distance[scratch.tail[a]] + scratch.cost[scratch.entry[a]];
                            if (through < best) best = through;
                          }
                          return best;
                        });
}

template <class T>
AIMLE_DEVICE bool is_tight(const GraphScratch<T>& scratch, int32_t a, int32_t head) {
  return scratch.distance[scratch.tail[a]] + scratch.cost[scratch.entry[a]] ==
         scratch.distance[head];
}

/// Arcs from the source over tight ones, in `scratch.counts`, which may be swapped with
/// `scratch.other`.
template <bool kInPlace, class T, class Group>
AIMLE_DEVICE void count_arcs(Group& group, const GraphSize& size, int32_t source,
                             GraphScratch<T>& scratch) {
  constexpr int32_t kUnseen = 0x3fffffff;
  auto* other = reinterpret_cast<int32_t*>(scratch.other);
  for (int32_t v = group.rank(); v < size.vertices; v += group.size()) {
    scratch.counts[v] = v == source ? 0 : kUnseen;
  }
  group.sync();
  sweep_graph<kInPlace>(group, size.vertices, -1, scratch.counts, other,
                        [&](const int32_t* counts, int32_t v) {
                          int32_t least = counts[v];
                          if (!(scratch.distance[v] < unreached<T>())) return least;
                          for (int32_t a = scratch.first[v]; a < scratch.first[v + 1]; ++a) {
                            const int32_t count = counts[scratch.tail[a]] + 1;
                            if (count < least && is_tight(scratch, a, v)) least = count;
                          }
                          return least;
                        });
}

/// Walks backwards from `at`, calling chosen for the entries of its arcs, to the source or, without
/// counts, to the first vertex with several tight arcs; returns where it stopped.
template <bool kCounted, class T, class Chosen>
AIMLE_DEVICE int32_t walk(const GraphScratch<T>& scratch, int32_t source, int32_t at,
                          Chosen chosen) {
  while (at != source) {
    int32_t found = -1, ways = 0;
    for (int32_t a = scratch.first[at]; a < scratch.first[at + 1]; ++a) {
      if (!is_tight(scratch, a, at)) continue;
      if (kCounted && scratch.counts[scratch.tail[a]] + 1 != scratch.counts[at]) continue;
      if (ways++ == 0 || scratch.entry[a] < scratch.entry[found]) found = a;
    }
    if (!kCounted && ways > 1) break;
    chosen(scratch.entry[found]);
    at = scratch.tail[found];
  }
  return at;
}

}  // namespace detail

/// The path of one row. `scores.for_each(rank, threads, body)` calls body(entry, score) for a
/// thread's share of the entries; `mask` is the row's or null, `data` its graph; `chosen(entry)` is
/// called for every entry of the path, by thread 0. Ends with a sync.
template <bool kAcyclic, bool kInPlace, class T, class Group, class Scores, class Chosen>
AIMLE_DEVICE Status solve_graph(Group& group, const GraphSize& size, const Scores& scores,
                                const bool* mask, const int64_t* data, GraphScratch<T> scratch,
                                Chosen chosen) {
  const Status status = detail::read_row<kAcyclic>(group, size, scores, mask, data, scratch);
  if (status != Status::kOk) return status;
  const auto source = static_cast<int32_t>(data[0]), target = static_cast<int32_t>(data[1]);
  detail::fill_distances<kAcyclic, kInPlace>(group, size, source, target, scratch);
  if (!(scratch.distance[target] < detail::unreached<T>())) return Status::kDisconnected;
  uint32_t stopped = 0;
  if (group.rank() == 0) {
    stopped = static_cast<uint32_t>(detail::walk<false>(scratch, source, target, chosen));
  }
  const auto at = static_cast<int32_t>(group.max(stopped));
  if (at == source) return Status::kOk;
  detail::count_arcs<kInPlace>(group, size, source, scratch);
  if (group.rank() == 0) detail::walk<true>(scratch, source, at, chosen);
  group.sync();
  return Status::kOk;
}

}  // namespace aimle::cuda
