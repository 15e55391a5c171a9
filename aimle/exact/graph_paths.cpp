// The list of the paths of a graph (enumerate.h): ordered by their entries from the source on.
#include <algorithm>
#include <limits>
#include <numeric>

#include "aimle/base/check.h"
#include "aimle/exact/enumerate.h"
#include "aimle/map/graph.h"

namespace aimle {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// Every path without repeated vertices, depth-first.
class PathList {
 public:
  explicit PathList(const detail::Graph& graph)
      : graph_(graph), open_(static_cast<size_t>(graph.vertices)), order_(graph.head.size()) {
    if (graph.target < 0) return;
    mark_what_leads_to_the_target();
    std::iota(order_.begin(), order_.end(), 0);
    for (int32_t v = 0; v < graph.vertices; ++v) {
      std::sort(order_.begin() + graph.first_out[v], order_.begin() + graph.first_out[v + 1],
                [&](int32_t a, int32_t b) { return graph.entry_out[a] < graph.entry_out[b]; });
    }
  }

  /// Calls visit(entries) for every path. False if there are too many paths or dead ends.
  template <class Visit>
  bool for_each(const Visit& visit) {
    steps_ = paths_ = 0;
    return graph_.target < 0 || walk(graph_.source, visit);
  }

 private:
  static constexpr int64_t kMostSteps = 20 * kMaxStructures;

  void mark_what_leads_to_the_target() {
    std::vector<int32_t> queue{graph_.target};
    open_[graph_.target] = 1;
    for (size_t next = 0; next < queue.size(); ++next) {
      const int32_t v = queue[next];
      for (int32_t a = graph_.first_in[v]; a < graph_.first_in[v + 1]; ++a) {
        if (open_[graph_.tail[a]] != 0) continue;
        open_[graph_.tail[a]] = 1;
        queue.push_back(graph_.tail[a]);
      }
    }
  }

  template <class Visit>
  bool walk(int32_t u, const Visit& visit) {
    if (u == graph_.target) {
      visit(entries_);
      return ++paths_ <= kMaxStructures;
    }
    open_[u] = 0;
    bool good = true;
    for (int32_t i = graph_.first_out[u]; good && i < graph_.first_out[u + 1]; ++i) {
      const int32_t a = order_[i], v = graph_.head[a];
      if (open_[v] == 0) continue;
      entries_.push_back(graph_.entry_out[a]);
      good = ++steps_ <= kMostSteps && walk(v, visit);
      entries_.pop_back();
    }
    open_[u] = 1;
    return good;
  }

  const detail::Graph& graph_;
  std::vector<uint8_t> open_;  // may be entered
  std::vector<int32_t> order_, entries_;
  int64_t steps_ = 0, paths_ = 0;
};

/// The number of paths to the target of an acyclic graph.
double count_paths(const detail::Graph& graph) {
  std::vector<double> ways(static_cast<size_t>(graph.vertices));
  ways[graph.source] = 1;
  for (int32_t v = graph.source + 1; v < graph.vertices; ++v) {
    for (int32_t a = graph.first_in[v]; a < graph.first_in[v + 1]; ++a) {
      ways[v] += ways[graph.tail[a]];
    }
  }
  return ways[graph.target];
}

template <bool kAcyclic>
detail::Graph known_graph(const PathOverGraph<kAcyclic>& solver) {
  AIMLE_CHECK(std::ssize(solver.known_data) == solver.numbers(),
              "[aimle::enumerate] expected the graph as data");
  detail::Graph graph;
  AIMLE_CHECK(graph.read(solver, solver.known_data.data()) == Status::kOk,
              "[aimle::enumerate] expected the data of a graph", kAcyclic ? " without cycles" : "",
              " (see aimle/map/graph_path.h)");
  return graph;
}

}  // namespace

template <bool kAcyclic>
double PathOverGraph<kAcyclic>::structure_count() const {
  if (known_data.empty()) return kInf;
  const detail::Graph graph = known_graph(*this);
  if (kAcyclic) return count_paths(graph);
  double count = 0;
  const bool all = PathList(graph).for_each([&](const auto&) { ++count; });
  return all ? count : kInf;
}

template <bool kAcyclic>
std::vector<uint8_t> PathOverGraph<kAcyclic>::structures() const {
  validate();
  const detail::Graph graph = known_graph(*this);
  std::vector<uint8_t> all;
  const bool listed = PathList(graph).for_each([&](const std::vector<int32_t>& entries) {
    all.resize(all.size() + static_cast<size_t>(edges));
    for (const int32_t entry : entries) all[all.size() - static_cast<size_t>(edges - entry)] = 1;
  });
  AIMLE_CHECK(listed, "[aimle::enumerate] expected at most ", kMaxStructures,
              " paths but there are more for vertices=", vertices, ", edges=", edges);
  return all;
}

template double GraphPath::structure_count() const;
template double DagPath::structure_count() const;
template std::vector<uint8_t> GraphPath::structures() const;
template std::vector<uint8_t> DagPath::structures() const;

}  // namespace aimle
