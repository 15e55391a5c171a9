// Instances of GraphPath and DagPath for the conformance test.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "aimle/map/graph_path.h"
#include "tests/map/conformance.h"

namespace aimle::conformance {

struct Arc {
  int64_t tail, head, entry;
};

/// The arcs of data as graph_path.h lays them out; empty, with good == false, if they are no graph.
template <class S>
struct ReadGraph {
  ReadGraph(const S& solver, const int64_t* data) : source(data[0]), target(data[1]) {
    const int64_t vertices = solver.vertices, arc_count = solver.arc_count();
    const auto inside = [](int64_t i, int64_t limit) { return 0 <= i && i < limit; };
    good = inside(source, vertices) && inside(target, vertices) && data[2] == 0 &&
           data[2 + vertices] == arc_count;
    for (int64_t v = 0; v < vertices; ++v) good = good && data[2 + v] <= data[3 + v];
    for (int64_t v = 0; good && v < vertices; ++v) {
      for (int64_t a = data[2 + v]; a < data[3 + v]; ++a) {
        const int64_t tail = data[3 + vertices + a], entry = data[3 + vertices + arc_count + a];
        good = good && inside(tail, vertices) && inside(entry, solver.edges);
        if (S::kAcyclic) good = good && tail < v;
        arcs.push_back({tail, v, entry});
      }
    }
    if (!good) arcs.clear();
  }

  int64_t source, target;
  bool good = false;
  std::vector<Arc> arcs;
};

/// data of arcs, which are sorted by their heads here.
inline std::vector<int64_t> graph_data(int64_t vertices, int64_t source, int64_t target,
                                       std::vector<Arc> arcs) {
  std::stable_sort(arcs.begin(), arcs.end(), [](Arc a, Arc b) { return a.head < b.head; });
  std::vector<int64_t> data{source, target, 0};
  for (int64_t v = 0; v < vertices; ++v) {
    data.push_back(std::count_if(arcs.begin(), arcs.end(), [&](Arc a) { return a.head <= v; }));
  }
  for (const Arc& arc : arcs) data.push_back(arc.tail);
  for (const Arc& arc : arcs) data.push_back(arc.entry);
  return data;
}

template <bool kAcyclic>
struct Instances<PathOverGraph<kAcyclic>> {
  using S = PathOverGraph<kAcyclic>;

  static S draw_small(Rng& rng) { return draw(rng, 6, 11); }
  static S draw_any(Rng& rng) { return one_in(rng, 4) ? draw(rng, 60, 300) : draw(rng, 12, 40); }
  static std::vector<S> smallest() {
    return {{.vertices = 1},
            {.vertices = 1, .edges = 2, .arcs = 0},
            {.vertices = 2, .edges = 1},
            {.vertices = 2, .edges = 3}};
  }
  static S largest() { return {.vertices = 3000, .edges = 20000}; }
  static std::string text(const S& solver) {
    return std::string(S::kName) + " vertices=" + std::to_string(solver.vertices) +
           " edges=" + std::to_string(solver.edges) +
           " arcs=" + std::to_string(solver.arc_count()) +
           (solver.negative == S::Negative::kClip ? " clip" : " error");
  }

  /// Arcs between vertices that are often near, with loops and parallel ones among them, and both
  /// directions of every edge where there are twice as many arcs. One in forty is no graph.
  static std::vector<int64_t> draw_data(const S& solver, Rng& rng) {
    const int64_t last = solver.vertices - 1, reach = uniform(rng, 1, std::max<int64_t>(last, 1));
    const bool both = solver.arc_count() > solver.edges;
    std::vector<int64_t> entries;
    for (int64_t j = 0; j < solver.edges; ++j) entries.push_back(j);
    std::shuffle(entries.begin(), entries.end(), rng);
    std::vector<Arc> arcs;
    while (std::ssize(arcs) < solver.arc_count()) {
      int64_t tail = uniform(rng, 0, last);
      int64_t head = std::clamp<int64_t>(tail + uniform(rng, -reach, reach), 0, last);
      const int64_t entry = entries[arcs.size() / (both ? 2 : 1)];
      if (kAcyclic && tail == head) continue;
      if (kAcyclic && tail > head) std::swap(tail, head);
      arcs.push_back({tail, head, entry});
      if (both) arcs.push_back({head, tail, entry});
    }
    int64_t source = uniform(rng, 0, last), target = uniform(rng, 0, last);
    if (!one_in(rng, 4)) source = uniform(rng, 0, last / 3), target = uniform(rng, last / 2, last);
    auto data = graph_data(solver.vertices, source, target, arcs);
    if (one_in(rng, 40)) spoil(data, rng);
    return data;
  }

  static std::vector<Structure> enumerate(const S& solver, const int64_t* data) {
    std::vector<Structure> all;
    const ReadGraph<S> graph(solver, data);
    Structure z(static_cast<size_t>(solver.edges));
    std::vector<bool> seen(static_cast<size_t>(solver.vertices));
    if (graph.good) extend(graph, graph.source, seen, z, all);
    return all;
  }

  template <class T>
  static double value(const S&, const Instance<T>& row, const Structure& z) {
    if (kAcyclic) return inner_product(row.scores, z);
    double sum = 0;
    for (size_t j = 0; j < z.size(); ++j) {
      if (z[j] != 0) sum += std::max(0.0, static_cast<double>(row.scores[j]));
    }
    return sum;
  }

  /// The definitions of graph_path.h by sweeps over the list of arcs (Bellman and Ford).
  template <class T>
  static Answer oracle(const S& solver, const Instance<T>& row) {
    constexpr T kInf = std::numeric_limits<T>::infinity();
    bool below_zero = false;
    std::vector<T> cost;
    for (int64_t j = 0; j < solver.edges; ++j) {
      const bool allowed = row.mask == nullptr || row.mask[j];
      if (allowed && std::isnan(row.scores[j])) return {.status = Status::kNaN};
      below_zero |= allowed && row.scores[j] < 0;
      const T x = kAcyclic ? -row.scores[j] : std::max(T(0), row.scores[j]);
      cost.push_back(allowed ? x : kInf);
    }
    const ReadGraph<S> graph(solver, row.data);
    if (!graph.good) return {.status = Status::kBadData};
    if (below_zero && !kAcyclic && solver.negative == S::Negative::kError) {
      return {.status = Status::kNegativeCost};
    }
    const auto at = [](int64_t i) { return static_cast<size_t>(i); };
    std::vector<T> distance(at(solver.vertices), kInf);
    distance[at(graph.source)] = 0;
    const auto through = [&](const Arc& arc) {
      const T from = distance[at(arc.tail)], along = cost[at(arc.entry)];
      return from < kInf && along < kInf ? from + along : kInf;
    };
    for (bool again = true; again;) {
      again = false;
      for (const Arc& arc : graph.arcs) {
        if (!(through(arc) < distance[at(arc.head)])) continue;
        distance[at(arc.head)] = through(arc);
        again = true;
      }
    }
    if (distance[at(graph.target)] == kInf) return {.status = Status::kDisconnected};
    constexpr int64_t kFar = 1'000'000'000;
    std::vector<int64_t> count(at(solver.vertices), kFar);
    count[at(graph.source)] = 0;
    const auto tight = [&](const Arc& arc) {
      return distance[at(arc.head)] < kInf && through(arc) == distance[at(arc.head)];
    };
    for (bool again = true; again;) {
      again = false;
      for (const Arc& arc : graph.arcs) {
        if (!tight(arc) || count[at(arc.tail)] + 1 >= count[at(arc.head)]) continue;
        count[at(arc.head)] = count[at(arc.tail)] + 1;
        again = true;
      }
    }
    Answer answer{.status = Status::kOk, .z = Structure(at(solver.edges))};
    for (int64_t v = graph.target; v != graph.source;) {
      const Arc* best = nullptr;
      for (const Arc& arc : graph.arcs) {
        if (arc.head != v || !tight(arc) || count[at(arc.tail)] + 1 != count[at(v)]) continue;
        if (best == nullptr || arc.entry < best->entry) best = &arc;
      }
      answer.z[at(best->entry)] = 1;
      v = best->tail;
    }
    return answer;
  }

 private:
  static S draw(Rng& rng, int64_t most_vertices, int64_t most_edges) {
    S solver{.vertices = uniform(rng, 2, most_vertices), .edges = uniform(rng, 1, most_edges)};
    if (kAcyclic) return solver;
    if (one_in(rng, 3)) solver.arcs = 2 * solver.edges;
    if (one_in(rng, 10)) solver.negative = S::Negative::kError;
    return solver;
  }

  static void spoil(std::vector<int64_t>& data, Rng& rng) {
    const auto at = static_cast<size_t>(uniform(rng, 0, std::ssize(data) - 1));
    data[at] = one_in(rng, 2) ? -1 : std::numeric_limits<int64_t>::max();
  }

  static void extend(const ReadGraph<S>& graph, int64_t v, std::vector<bool>& seen, Structure& z,
                     std::vector<Structure>& all) {
    if (v == graph.target) return all.push_back(z);
    seen[static_cast<size_t>(v)] = true;
    for (const Arc& arc : graph.arcs) {
      if (arc.tail != v || seen[static_cast<size_t>(arc.head)]) continue;
      z[static_cast<size_t>(arc.entry)] = 1;
      extend(graph, arc.head, seen, z, all);
      z[static_cast<size_t>(arc.entry)] = 0;
    }
    seen[static_cast<size_t>(v)] = false;
  }
};

}  // namespace aimle::conformance
