// Instances of Arborescence for the conformance test.
#pragma once

#include <algorithm>
#include <map>
#include <utility>

#include "aimle/map/arborescence.h"
#include "tests/map/conformance.h"

namespace aimle::conformance {

template <>
struct Instances<Arborescence> {
  static Arborescence draw_small(Rng& rng) {
    return {.vertices = one_in(rng, 12) ? 5 : uniform(rng, 1, 4), .single_root = one_in(rng, 2)};
  }
  static Arborescence draw_any(Rng& rng) {
    return {.vertices = one_in(rng, 10) ? uniform(rng, 9, 14) : uniform(rng, 1, 8),
            .single_root = one_in(rng, 2)};
  }
  static std::vector<Arborescence> smallest() {
    std::vector<Arborescence> all;
    for (const int64_t n : {1, 2, 3}) {
      all.push_back({.vertices = n});
      all.push_back({.vertices = n, .single_root = true});
    }
    return all;
  }
  static Arborescence largest() { return {.vertices = 30}; }
  static std::string text(const Arborescence& solver) {
    return "Arborescence vertices=" + std::to_string(solver.vertices) +
           (solver.single_root ? " of one root" : "");
  }

  /// Every choice of heads from which a walk of n steps ends at a root.
  static std::vector<Structure> enumerate(const Arborescence& solver, std::optional<int64_t>) {
    const int64_t n = solver.vertices;
    std::vector<Structure> all;
    int64_t choices = 1;
    for (int64_t v = 0; v < n; ++v) choices *= n;
    for (int64_t choice = 0; choice < choices; ++choice) {
      std::vector<int64_t> head;
      for (int64_t v = 0, rest = choice; v < n; ++v, rest /= n) head.push_back(rest % n);
      int64_t roots = 0;
      bool good = true;
      for (int64_t v = 0; v < n; ++v) {
        roots += head[static_cast<size_t>(v)] == v;
        int64_t at = v;
        for (int64_t step = 0; step < n; ++step) at = head[static_cast<size_t>(at)];
        good &= head[static_cast<size_t>(at)] == at;
      }
      if (!good || (solver.single_root && roots != 1)) continue;
      Structure z(static_cast<size_t>(n * n));
      for (int64_t v = 0; v < n; ++v)
        z[static_cast<size_t>(head[static_cast<size_t>(v)] * n + v)] = 1;
      all.push_back(z);
    }
    return all;
  }

  template <class T>
  static double value(const Arborescence&, const Instance<T>& row, const Structure& z) {
    return inner_product(row.scores, z);
  }

  /// A weight with its place in the tie rule: a number, then an indicator of entries, compared one
  /// after the other.
  using Ranked = std::vector<int64_t>;
  static Ranked minus(Ranked a, const Ranked& b) {
    for (size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
    return a;
  }
  struct Edge {
    int64_t from, to;  // in the graph at hand; 0 is the root
    Ranked weight;
    size_t origin;  // in the graph before contraction
  };

  /// Chu and Liu's recursion: the edges, by their place in `edges`, of the best arborescence from
  /// node 0 over `count` nodes.
  static std::optional<std::vector<size_t>> best_edges(int64_t count,
                                                       const std::vector<Edge>& edges) {
    constexpr size_t kNone = static_cast<size_t>(-1);
    std::vector<size_t> best(static_cast<size_t>(count), kNone);
    for (size_t e = 0; e < edges.size(); ++e) {
      const auto to = static_cast<size_t>(edges[e].to);
      if (to == 0 || edges[e].from == edges[e].to) continue;
      if (best[to] == kNone || edges[best[to]].weight < edges[e].weight) best[to] = e;
    }
    std::vector<int64_t> cycle;
    for (int64_t v = 1; v < count; ++v) {
      if (best[static_cast<size_t>(v)] == kNone) return std::nullopt;
    }
    for (int64_t v = 1; v < count && cycle.empty(); ++v) {
      std::vector<int64_t> walk;
      int64_t at = v;
      while (at != 0 && std::find(walk.begin(), walk.end(), at) == walk.end()) {
        walk.push_back(at);
        at = edges[best[static_cast<size_t>(at)]].from;
      }
      if (at != 0) cycle.assign(std::find(walk.begin(), walk.end(), at), walk.end());
    }
    if (cycle.empty()) return std::vector<size_t>(best.begin() + 1, best.end());
    // The cycle becomes the last node of a smaller graph.
    std::vector<int64_t> name(static_cast<size_t>(count));
    int64_t names = 0;
    const auto inside = [&](int64_t v) {
      return std::find(cycle.begin(), cycle.end(), v) != cycle.end();
    };
    for (int64_t v = 0; v < count; ++v) {
      if (!inside(v)) name[static_cast<size_t>(v)] = names++;
    }
    for (const int64_t v : cycle) name[static_cast<size_t>(v)] = names;
    std::vector<Edge> smaller;
    for (size_t e = 0; e < edges.size(); ++e) {
      const int64_t from = name[static_cast<size_t>(edges[e].from)];
      const int64_t to = name[static_cast<size_t>(edges[e].to)];
      if (from == to) continue;
      smaller.push_back({from, to,
                         to == names ? minus(edges[e].weight,
                                             edges[best[static_cast<size_t>(edges[e].to)]].weight)
                                     : edges[e].weight,
                         e});
    }
    const auto chosen = best_edges(names + 1, smaller);
    if (!chosen) return std::nullopt;
    std::vector<size_t> result;
    int64_t entered = -1;
    for (const size_t e : *chosen) {
      result.push_back(smaller[e].origin);
      if (smaller[e].to == names) entered = edges[smaller[e].origin].to;
    }
    for (const int64_t v : cycle) {
      if (v != entered) result.push_back(best[static_cast<size_t>(v)]);
    }
    return result;
  }

  template <class T>
  static Answer oracle(const Arborescence& solver, const Instance<T>& row) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    const int64_t n = solver.vertices;
    double largest = 0;
    bool infinite = false;
    const auto allowed = [&](int64_t e) {
      return (row.mask == nullptr || row.mask[e]) && !(static_cast<double>(row.scores[e]) == -kInf);
    };
    for (int64_t e = 0; e < n * n; ++e) {
      if (!allowed(e)) continue;
      const auto x = static_cast<double>(row.scores[e]);
      if (std::isnan(x)) return {.status = Status::kNaN};
      infinite |= x == kInf;
      if (x < kInf) largest = std::max(largest, std::abs(x));
    }
    int exponent = 0;
    std::frexp(largest, &exponent);
    const int log = static_cast<int>(std::ceil(std::log2(static_cast<double>(n))));
    const int bits = infinite ? 48 - 2 * log : 50 - log;
    std::vector<Edge> edges;
    for (int64_t e = 0; e < n * n; ++e) {
      if (!allowed(e)) continue;
      const auto x = static_cast<double>(row.scores[e]);
      Ranked weight(static_cast<size_t>(n * n + 2));
      weight[0] = solver.single_root && e / n == e % n ? -1 : 0;
      weight[1] = x == kInf ? int64_t{1} << (50 - log)
                            : static_cast<int64_t>(std::nearbyint(std::ldexp(x, bits - exponent)));
      weight[static_cast<size_t>(e + 2)] = 1;
      edges.push_back({e / n == e % n ? 0 : e / n + 1, e % n + 1, weight, static_cast<size_t>(e)});
    }
    const auto chosen = best_edges(n + 1, edges);
    if (!chosen) return {.status = Status::kDisconnected};
    Answer answer{.status = Status::kOk, .z = Structure(static_cast<size_t>(n * n))};
    int64_t roots = 0;
    for (const size_t e : *chosen) {
      answer.z[edges[e].origin] = 1;
      roots += edges[e].from == 0;
    }
    if (solver.single_root && roots != 1) return {.status = Status::kDisconnected};
    return answer;
  }
};

}  // namespace aimle::conformance
