// SpanningTree: the maximum spanning tree of the complete graph on `vertices` vertices.
//
//   z = argmax over indicators of spanning trees of <x, z>; the lower edge index wins a tie.
//
// Two layouts of a row:
//   kUndirected  n(n-1)/2 entries, edges in the order (0,1), (0,2), ... (0,n-1), (1,2), ...
//   kDirected    n(n-1) entries, receiver-major: row r of the n x (n-1) view holds the senders
//                s != r in ascending order. The weight of {i, j} is x_ij + x_ji (rounded once, in
//                the type of the scores) and z is written to both. Ties go by undirected index.
// A mask removes edges (directed: an edge stays only if both directions are unmasked); if no tree
// is left the row is kDisconnected. NaN in an unmasked edge (directed: also inf - inf) is kNaN,
// which takes precedence. Infinities are ordered like numbers: an edge of weight -inf may be
// chosen.
//
// Dense Prim, O(n^2); small graphs in float32 with AVX2 solve several trees across the lanes.
//
//   aimle::solve(aimle::SpanningTree{.vertices = 10}, rows);
#pragma once

#include "aimle/base/host_device.h"
#include "aimle/map/map.h"

namespace aimle {

struct SpanningTree {
  static constexpr std::string_view kName = "spanning_tree";
  static constexpr Sense kSense = Sense::kMax;
  enum class Layout { kUndirected, kDirected };
  /// The ends of an edge fit into 32 bits; a row of this size takes gigabytes.
  static constexpr int64_t kMaxVertices = 65'536;

  int64_t vertices = 0;
  Layout layout = Layout::kUndirected;

  int64_t edges() const { return vertices * (vertices - 1) / 2; }
  int64_t size() const { return layout == Layout::kDirected ? 2 * edges() : edges(); }
  double work_ns() const { return 20.0 + 0.6 * static_cast<double>(vertices * vertices); }
  SolutionSize solution_size() const {
    return {.fixed = true, .ones = (layout == Layout::kDirected ? 2 : 1) * (vertices - 1)};
  }
  void validate() const;
  std::vector<uint8_t> structures() const;
  double structure_count() const;
  /// For the thresholds of its entries (swap_finder.h).
  template <class T>
  std::unique_ptr<SwapFinder<T>> swap_finder() const;

  static void declare(Declaration<SpanningTree>& solver);
  /// Infers the layout from the number of entries; without `vertices`, those of an undirected tree.
  void fit(Shape instance);
  std::vector<int64_t> shape_for(int64_t n) const { return {n * (n - 1) / 2}; }

  /// Index of edge {i, j}, i < j, in the undirected order.
  AIMLE_HD static constexpr int64_t edge(int64_t i, int64_t j, int64_t vertices) {
    return i * (2 * vertices - i - 1) / 2 + (j - i - 1);
  }
  /// Index of sender s -> receiver r, s != r, in the directed order.
  static constexpr int64_t arc(int64_t receiver, int64_t sender, int64_t vertices) {
    return receiver * (vertices - 1) + sender - (sender > receiver ? 1 : 0);
  }
};

void solve_rows(const SpanningTree& solver, const Rows<float>& rows);
void solve_rows(const SpanningTree& solver, const Rows<double>& rows);

/// Replaces both directions of every edge by their mean: `count` directed rows, in place allowed.
template <class T>
void symmetrise(int64_t vertices, int64_t count, const T* scores, T* out);

}  // namespace aimle
