// Kruskal's algorithm with a sort and a union-find: the slow, plain oracle of SpanningTree.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "aimle/map/spanning_tree.h"

namespace aimle::testing {

template <class T>
struct TreeAnswer {
  Status status;
  std::vector<T> z;
};

/// Solves one row in either layout, by the rules of spanning_tree.h read word for word.
template <class T>
TreeAnswer<T> kruskal(const SpanningTree& solver, const T* x, const bool* mask = nullptr) {
  struct Edge {
    T weight;
    int64_t i, j;
  };
  const int64_t n = solver.vertices;
  const bool directed = solver.layout == SpanningTree::Layout::kDirected;
  const std::vector<T> nan_row(static_cast<size_t>(solver.size()),
                               std::numeric_limits<T>::quiet_NaN());
  std::vector<Edge> edges;
  for (int64_t i = 0, e = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j, ++e) {
      const int64_t ij = directed ? i * (n - 1) + j - 1 : e;
      const int64_t ji = directed ? j * (n - 1) + i : e;
      if (mask != nullptr && !(mask[ij] && mask[ji])) continue;
      const T weight = directed ? x[ij] + x[ji] : x[e];
      if (std::isnan(weight)) return {Status::kNaN, nan_row};
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
  std::vector<T> z(static_cast<size_t>(solver.size()), T{0});
  int64_t chosen = 0;
  for (const Edge& edge : edges) {
    const int64_t a = root(edge.i), b = root(edge.j);
    if (a == b) continue;
    parent[static_cast<size_t>(a)] = b;
    ++chosen;
    if (directed) {
      z[static_cast<size_t>(SpanningTree::arc(edge.i, edge.j, n))] = 1;
      z[static_cast<size_t>(SpanningTree::arc(edge.j, edge.i, n))] = 1;
    } else {
      z[static_cast<size_t>(SpanningTree::edge(edge.i, edge.j, n))] = 1;
    }
  }
  if (chosen != n - 1) return {Status::kDisconnected, nan_row};
  return {Status::kOk, z};
}

}  // namespace aimle::testing
