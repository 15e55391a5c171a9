// The graph of a GraphPath or DagPath as the CPU's algorithms walk it. Private to graph*.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "aimle/map/graph_path.h"

namespace aimle::detail {

/// The arcs of a graph, once by their heads and once by their tails. Vertices have numbers of their
/// own: those of DagPath the given ones, of GraphPath those in which a search in breadth from the
/// source comes to them, without those that it never comes to.
struct Graph {
  int32_t vertices = 0;
  int32_t source = 0;
  int32_t target = 0;  // < 0: out of reach
  // Arcs first_in[v] ... first_in[v + 1] - 1 enter v,
  std::vector<int32_t> first_in, tail, entry_in;
  // and first_out[v] ... first_out[v + 1] - 1 leave it.
  std::vector<int32_t> first_out, head, entry_out;

  /// kBadData for data that are no graph, which is then not to be used.
  template <bool kAcyclic>
  Status read(const PathOverGraph<kAcyclic>& solver, const int64_t* data);

 private:
  void sort_by_tails();
  void number_in_breadth();

  std::vector<int32_t> head_of_, number_, order_;
};

/// The last graph that was read, for blocks of rows of the same one.
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

  /// Gives back the room of a large graph.
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

/// Of this thread and of one kind of solver.
template <class S>
LastGraph& last_graph() {
  static thread_local LastGraph graph;
  return graph;
}

}  // namespace aimle::detail
