// GraphPath and DagPath: the best path from a source to a target over the arcs of a directed graph.
//
//   GraphPath  z = argmin over paths of <c, z>, costs c >= 0, any graph
//   DagPath    z = argmax over paths of <x, z>, scores x of any sign, graphs without cycles
//
// z marks the entries of the path's arcs. The graph of an instance is given as data, shared by a
// batch or one per instance, as vertices + 3 + 2 arcs integers:
//
//   source, target, offset_0 ... offset_vertices, tail_0 ... tail_(arcs-1), entry_0 ...
//
// The arcs that enter vertex v are a = offset_v ... offset_(v+1) - 1; arc a comes from tail_a, and
// its cost is entry_a of the row. Usually there is one arc per entry. Two arcs may share an entry,
// like the directions of an undirected edge, as long as no relevant path uses both. The vertices of
// DagPath are numbered so that every arc goes from a lower to a higher number. Invalid data make
// the row kBadData.
//
// Distances are sums from the source, rounded in the type of the costs at every step:
//   d(source) = 0;  d(v) = min over arcs a into v of fl(d(tail_a) + c(entry_a)),
// for DagPath with c = -x. Ties, in this order: smallest d; fewest arcs; lowest entry. Precisely:
// arc a is tight if fl(d(tail_a) + c(entry_a)) = d(v); arcs(v) = 1 + min over tight a of
// arcs(tail_a); and going backwards from the target, the step is the tight arc with arcs(tail_a) +
// 1 = arcs(v) whose entry is lowest. arcs decreases at every step, so there are no loops even if
// costs are zero. If the source is the target, z is zero.
//
// Costs of GraphPath below zero are clipped to zero (`Negative::kClip`, needed for perturbed costs)
// or make the row kNegativeCost (`Negative::kError`). Masked entries, costs of +inf and scores of
// -inf are walls; if there is no path, the row is kDisconnected. A distance that overflows to
// infinity counts as no path. NaN in an unmasked entry is kNaN. Precedence: kNaN, kBadData,
// kNegativeCost, kDisconnected.
//
// DagPath: one pass, O(arcs). GraphPath: Dijkstra, O(arcs + vertices log vertices). Several rows of
// one graph are processed in parallel across the lanes of vectors, in sweeps until nothing changes.
// Rounding is monotone, so all methods give the same distances, bit for bit.
//
//   aimle::solve(aimle::GraphPath{.vertices = 4, .edges = 5}, {.data = {graph.data()}, ...});
#pragma once

#include <vector>

#include "aimle/map/map.h"

namespace aimle {

template <bool kAcyclic_>
struct PathOverGraph {
  static constexpr bool kAcyclic = kAcyclic_;
  static constexpr std::string_view kName = kAcyclic ? "dag_path" : "graph_path";
  static constexpr Sense kSense = kAcyclic ? Sense::kMax : Sense::kMin;
  static constexpr bool kHasCosts = !kAcyclic;
  enum class Negative { kClip, kError };
  static constexpr int64_t kMaxSize = int64_t{1} << 28;  // vertices, edges, arcs

  int64_t vertices = 0;
  int64_t edges = 0;                    // entries of a row
  int64_t arcs = -1;                    // < 0: as many as edges
  Negative negative = Negative::kClip;  // of GraphPath

  int64_t size() const { return edges; }
  int64_t arc_count() const { return arcs < 0 ? edges : arcs; }
  /// The number of integers per instance.
  int64_t numbers() const { return vertices + 3 + 2 * arc_count(); }
  double work_ns() const {
    return 200.0 + 5.0 * static_cast<double>(vertices + edges + arc_count());
  }
  SolutionSize solution_size() const { return {}; }
  void validate() const;
  /// Of the data that `take_data` was given.
  std::vector<uint8_t> structures() const;
  double structure_count() const;

  static void declare(Declaration<PathOverGraph>& solver);
  void take_data(int64_t length, const int64_t* data);
  void fit(Shape instance);

  int64_t data_length = -1;              // as given to take_data
  std::vector<int64_t> known_data = {};  // those of all instances, if they are known
};

using GraphPath = PathOverGraph<false>;
using DagPath = PathOverGraph<true>;

void solve_rows(const GraphPath& solver, const Rows<float>& rows);
void solve_rows(const GraphPath& solver, const Rows<double>& rows);
void solve_rows(const DagPath& solver, const Rows<float>& rows);
void solve_rows(const DagPath& solver, const Rows<double>& rows);

}  // namespace aimle
