// The graph of a GraphPath or DagPath for the CPU's algorithms. Private to graph*.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "aimle/map/graph_path.h"

namespace aimle::detail {

/// The arcs of a graph, once by their heads and once by their tails. Vertices are renumbered: for
/// DagPath the numbers are the given ones, for GraphPath the order of a breadth-first search from
/// the source, without unreachable vertices.
struct Graph {
  int32_t vertices = 0;
  int32_t source = 0;
  int32_t target = 0;  // < 0: unreachable
  // Arcs first_in[v] ... first_in[v + 1] - 1 enter v,
  std::vector<int32_t> first_in, tail, entry_in;
  // and first_out[v] ... first_out[v + 1] - 1 leave it.
  std::vector<int32_t> first_out, head, entry_out;

  /// kBadData for invalid data; the graph must not be used then.
  template <bool kAcyclic>
  Status read(const PathOverGraph<kAcyclic>& solver, const int64_t* data);

 private:
  void sort_by_tails();
  void number_in_breadth();

  std::vector<int32_t> head_of_, number_, order_;
};

/// The graph read last, for blocks of rows with the same graph.
class LastGraph {
 public:
  template <bool kAcyclic>
  const Graph& read(const PathOverGraph<kAcyclic>& solver, const int64_t* data, Status& status) {
    const auto length = static_cast<size_t>(solver.numbers());
    if (edges_ != solver.edges || vertices_ != solver.vertices || length != numbers_.size() ||
        !std::equal(numbers_.begin(), numbers_.end(), data)) {
      edges_ = -1;  // until it is read
      numbers_.assign(data, data + length);
      status_ = graph_.read(solver, data);
      edges_ = solver.edges;
      vertices_ = solver.vertices;
    }
    status = status_;
    return graph_;
  }

  /// Frees the memory of a large graph.
  void forget_if_large() {
    constexpr size_t kLarge = size_t{1} << 20;
    if (numbers_.size() > kLarge) *this = {};
  }

 private:
  int64_t edges_ = -1;
  int64_t vertices_ = -1;
  std::vector<int64_t> numbers_;
  Graph graph_;
  Status status_ = Status::kOk;
};

/// One per thread and kind of solver.
template <class S>
LastGraph& last_graph() {
  static thread_local LastGraph graph;
  return graph;
}

}  // namespace aimle::detail
