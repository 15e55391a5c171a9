// From distances to the path: the tie rule of graph_path.h. Private to graph*.cpp.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "aimle/map/graph.h"

namespace aimle::detail {

template <class T>
class GraphWalk {
 public:
  /// Marks the path's entries in z. For vertex v and entry j, `distance` and `cost` are read at
  /// v * stride and j * stride; the target is reachable. Distances beyond the target's need not be
  /// minimal.
  void write_path(const Graph& graph, const T* distance, const T* cost, int64_t stride, T* z) {
    const auto tight = [&](int32_t u, int32_t v, int32_t entry) {
      return distance[u * stride] + cost[entry * stride] == distance[v * stride];
    };
    int32_t at = graph.target;
    while (at != graph.source) {
      int32_t found = -1, ways = 0;
      for (int32_t a = graph.first_in[at]; a < graph.first_in[at + 1]; ++a) {
        if (tight(graph.tail[a], at, graph.entry_in[a])) found = a, ++ways;
      }
      if (ways > 1) break;
      z[graph.entry_in[found]] = T(1);
      at = graph.tail[found];
    }
    if (at == graph.source) return;
    count_arcs(graph, at, tight);
    while (at != graph.source) {
      int32_t found = -1;
      for (int32_t a = graph.first_in[at]; a < graph.first_in[at + 1]; ++a) {
        if (arcs_[graph.tail[a]] + 1 != arcs_[at]) continue;
        if (found >= 0 && graph.entry_in[found] <= graph.entry_in[a]) continue;
        if (tight(graph.tail[a], at, graph.entry_in[a])) found = a;
      }
      z[graph.entry_in[found]] = T(1);
      at = graph.tail[found];
    }
  }

 private:
  static constexpr int32_t kUnseen = std::numeric_limits<int32_t>::max() / 2;

  /// arcs(v) from the source, up to that of `end`.
  template <class Tight>
  void count_arcs(const Graph& graph, int32_t end, const Tight& tight) {
    arcs_.assign(static_cast<size_t>(graph.vertices), kUnseen);
    queue_.clear();
    arcs_[graph.source] = 0;
    queue_.push_back(graph.source);
    for (size_t next = 0; next < queue_.size() && arcs_[end] == kUnseen; ++next) {
      const int32_t u = queue_[next];
      for (int32_t a = graph.first_out[u]; a < graph.first_out[u + 1]; ++a) {
        const int32_t v = graph.head[a];
        if (arcs_[v] != kUnseen || !tight(u, v, graph.entry_out[a])) continue;
        arcs_[v] = arcs_[u] + 1;
        queue_.push_back(v);
      }
    }
  }

  std::vector<int32_t> arcs_, queue_;
};

}  // namespace aimle::detail
