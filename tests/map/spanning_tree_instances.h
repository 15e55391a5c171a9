// Instances of SpanningTree for the conformance test.
#pragma once

#include <algorithm>
#include <numeric>

#include "aimle/map/spanning_tree.h"
#include "tests/map/conformance.h"

namespace aimle::conformance {

template <>
struct Instances<SpanningTree> {
  using Layout = SpanningTree::Layout;

  static SpanningTree draw_small(Rng& rng) {
    return {.vertices = one_in(rng, 20) ? 6 : uniform(rng, 1, 5), .layout = draw_layout(rng)};
  }
  static SpanningTree draw_any(Rng& rng) {
    return {.vertices = one_in(rng, 4) ? uniform(rng, 17, 48) : uniform(rng, 1, 16),
            .layout = draw_layout(rng)};
  }
  static std::vector<SpanningTree> smallest() {
    std::vector<SpanningTree> all;
    for (const int64_t n : {1, 2, 3, 4}) {
      all.push_back({.vertices = n, .layout = Layout::kUndirected});
      all.push_back({.vertices = n, .layout = Layout::kDirected});
    }
    return all;
  }
  static SpanningTree largest() { return {.vertices = 300}; }
  static std::string text(const SpanningTree& solver) {
    return "SpanningTree vertices=" + std::to_string(solver.vertices) +
           (solver.layout == Layout::kDirected ? " directed" : " undirected");
  }

  /// Every labelled tree once, from its Prüfer sequence.
  static std::vector<Structure> enumerate(const SpanningTree& solver, std::optional<int64_t>) {
    const int64_t n = solver.vertices;
    if (n == 1) return {Structure{}};
    std::vector<Structure> all;
    std::vector<int64_t> sequence(static_cast<size_t>(n - 2), 0);
    while (true) {
      all.push_back(tree_of(solver, sequence));
      size_t digit = 0;
      while (digit < sequence.size() && ++sequence[digit] == n) sequence[digit++] = 0;
      if (digit == sequence.size()) return all;
    }
  }

  template <class T>
  static double value(const SpanningTree&, const Instance<T>& row, const Structure& z) {
    return inner_product(row.scores, z);
  }

  /// Kruskal: a stable sort of the edges that the mask left, and a forest that grows.
  template <class T>
  static Answer oracle(const SpanningTree& solver, const Instance<T>& row) {
    struct Edge {
      T weight;
      int64_t i, j;
    };
    const int64_t n = solver.vertices;
    std::vector<Edge> edges;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = i + 1; j < n; ++j) {
        const auto [ij, ji] = entries(solver, i, j);
        if (row.mask != nullptr && !(row.mask[ij] && row.mask[ji])) continue;
        const T weight = ij == ji ? row.scores[ij] : row.scores[ij] + row.scores[ji];
        if (std::isnan(weight)) return {.status = Status::kNaN};
        edges.push_back({weight, i, j});
      }
    }
    std::stable_sort(edges.begin(), edges.end(),
                     [](const Edge& a, const Edge& b) { return a.weight > b.weight; });
    std::vector<int64_t> parent(static_cast<size_t>(n));
    std::iota(parent.begin(), parent.end(), 0);
    const auto root = [&](int64_t v) {
      while (parent[static_cast<size_t>(v)] != v) v = parent[static_cast<size_t>(v)];
      return v;
    };
    Answer answer{.status = Status::kOk, .z = Structure(static_cast<size_t>(solver.size()))};
    int64_t chosen = 0;
    for (const Edge& edge : edges) {
      if (root(edge.i) == root(edge.j)) continue;
      parent[static_cast<size_t>(root(edge.i))] = root(edge.j);
      choose(solver, edge.i, edge.j, answer.z);
      ++chosen;
    }
    if (chosen != n - 1) return {.status = Status::kDisconnected};
    return answer;
  }

 private:
  static Layout draw_layout(Rng& rng) {
    return one_in(rng, 2) ? Layout::kDirected : Layout::kUndirected;
  }

  /// Where {i, j}, i < j, lies in a row: both directions, or the same entry twice. Counted out
  /// rather than computed by the formulas of the solver.
  static std::pair<int64_t, int64_t> entries(const SpanningTree& solver, int64_t i, int64_t j) {
    const int64_t n = solver.vertices;
    if (solver.layout == Layout::kDirected) return {i * (n - 1) + j - 1, j * (n - 1) + i};
    int64_t before = 0;
    for (int64_t row = 0; row < i; ++row) before += n - 1 - row;
    return {before + j - i - 1, before + j - i - 1};
  }

  static void choose(const SpanningTree& solver, int64_t i, int64_t j, Structure& z) {
    const auto [ij, ji] = entries(solver, i, j);
    z[static_cast<size_t>(ij)] = z[static_cast<size_t>(ji)] = 1;
  }

  static Structure tree_of(const SpanningTree& solver, const std::vector<int64_t>& sequence) {
    const int64_t n = solver.vertices;
    std::vector<int64_t> degree(static_cast<size_t>(n), 1);
    for (const int64_t v : sequence) ++degree[static_cast<size_t>(v)];
    Structure z(static_cast<size_t>(solver.size()));
    const auto take_leaf = [&] {
      const auto leaf = std::find(degree.begin(), degree.end(), 1);
      *leaf = 0;
      return static_cast<int64_t>(leaf - degree.begin());
    };
    for (const int64_t v : sequence) {
      const int64_t leaf = take_leaf();
      choose(solver, std::min(leaf, v), std::max(leaf, v), z);
      --degree[static_cast<size_t>(v)];
    }
    const int64_t i = take_leaf();
    const int64_t j = take_leaf();
    choose(solver, i, j, z);
    return z;
  }
};

}  // namespace aimle::conformance
