// The graph of a GraphPath or DagPath as the CPU's algorithms walk it. Private to graph*.cpp.
#pragma once

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

}  // namespace aimle::detail
