#include "aimle/map/spanning_tree.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "aimle/base/check.h"

namespace aimle {
namespace {

using Layout = SpanningTree::Layout;

/// One row seen as a graph: the weight of an edge, whether the mask left it, and where it is
/// written.
template <Layout layout, class T>
struct Graph {
  int64_t n;
  const T* x;
  const bool* mask;

  bool has(int64_t i, int64_t j) const {
    if (mask == nullptr) return true;
    if constexpr (layout == Layout::kUndirected) return mask[SpanningTree::edge(i, j, n)];
    return mask[SpanningTree::arc(i, j, n)] && mask[SpanningTree::arc(j, i, n)];
  }
  T weight(int64_t i, int64_t j) const {
    if constexpr (layout == Layout::kUndirected) return x[SpanningTree::edge(i, j, n)];
    return x[SpanningTree::arc(i, j, n)] + x[SpanningTree::arc(j, i, n)];
  }
  void choose(int64_t i, int64_t j, T* z) const {
    if constexpr (layout == Layout::kUndirected) {
      z[SpanningTree::edge(i, j, n)] = 1;
    } else {
      z[SpanningTree::arc(i, j, n)] = z[SpanningTree::arc(j, i, n)] = 1;
    }
  }
  bool has_nan() const {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = i + 1; j < n; ++j) {
        const T w = weight(i, j);
        if (w != w && has(i, j)) return true;
      }
    }
    return false;
  }
};

/// A vertex outside the tree and the best edge that joins it. `edge` is past every index while
/// there is none.
template <class T>
struct Candidate {
  T weight;
  int64_t edge;
  int64_t vertex;
  int64_t neighbour;

  bool loses_to(T other_weight, int64_t other_edge) const {
    return other_weight > weight || (other_weight == weight && other_edge < edge);
  }
};

/// Dense Prim. Weight and edge index together order the edges strictly, so the tree is unique.
template <Layout layout, class T>
Status solve_row(const Graph<layout, T>& graph, std::vector<Candidate<T>>& outside, T* z) {
  const int64_t n = graph.n;
  if (graph.has_nan()) return Status::kNaN;
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  const int64_t no_edge = n * n;
  outside.clear();
  for (int64_t v = 1; v < n; ++v) outside.push_back({kLowest, no_edge, v, 0});
  int64_t joined = 0;
  while (!outside.empty()) {
    size_t best = 0;
    for (size_t c = 0; c < outside.size(); ++c) {
      Candidate<T>& candidate = outside[c];
      const int64_t i = std::min(joined, candidate.vertex);
      const int64_t j = std::max(joined, candidate.vertex);
      if (graph.has(i, j)) {
        const T weight = graph.weight(i, j);
        const int64_t edge = SpanningTree::edge(i, j, n);
        if (candidate.loses_to(weight, edge)) {
          candidate.weight = weight;
          candidate.edge = edge;
          candidate.neighbour = joined;
        }
      }
      if (outside[best].loses_to(candidate.weight, candidate.edge)) best = c;
    }
    if (outside[best].edge == no_edge) return Status::kDisconnected;
    joined = outside[best].vertex;
    graph.choose(std::min(joined, outside[best].neighbour),
                 std::max(joined, outside[best].neighbour), z);
    outside[best] = outside.back();
    outside.pop_back();
  }
  return Status::kOk;
}

template <Layout layout, class T>
void solve_layout(const SpanningTree& solver, const Rows<T>& rows) {
  const int64_t size = solver.size();
  std::vector<Candidate<T>> outside;
  outside.reserve(static_cast<size_t>(solver.vertices));
  for (int64_t r = 0; r < rows.count; ++r) {
    const Graph<layout, T> graph{.n = solver.vertices,
                                 .x = rows.scores + r * size,
                                 .mask = rows.mask ? rows.mask + r * size : nullptr};
    T* z = rows.z + r * size;
    std::fill_n(z, size, T{0});
    rows.status[r] = solve_row(graph, outside, z);
    if (rows.status[r] != Status::kOk) std::fill_n(z, size, std::numeric_limits<T>::quiet_NaN());
  }
}

template <class T>
void solve_portable(const SpanningTree& solver, const Rows<T>& rows) {
  if (solver.layout == Layout::kUndirected) {
    solve_layout<Layout::kUndirected>(solver, rows);
  } else {
    solve_layout<Layout::kDirected>(solver, rows);
  }
}

}  // namespace

void SpanningTree::validate() const {
  AIMLE_CHECK(1 <= vertices && vertices <= kMaxVertices,
              "[aimle::spanning_tree] expected 1 <= vertices <= ", kMaxVertices,
              " but got vertices=", vertices);
}

void solve_rows(const SpanningTree& solver, const Rows<float>& rows) {
  solve_portable(solver, rows);
}

void solve_rows(const SpanningTree& solver, const Rows<double>& rows) {
  solve_portable(solver, rows);
}

template <class T>
void symmetrise(int64_t vertices, int64_t count, const T* scores, T* out) {
  AIMLE_CHECK(1 <= vertices && vertices <= SpanningTree::kMaxVertices,
              "[aimle::symmetrise] expected 1 <= vertices <= ", SpanningTree::kMaxVertices,
              " but got vertices=", vertices);
  AIMLE_CHECK(count >= 0, "[aimle::symmetrise] expected count >= 0 but got count=", count);
  const int64_t size = vertices * (vertices - 1);
  for (int64_t r = 0; r < count; ++r, scores += size, out += size) {
    for (int64_t i = 0; i < vertices; ++i) {
      for (int64_t j = i + 1; j < vertices; ++j) {
        const int64_t ij = SpanningTree::arc(i, j, vertices);
        const int64_t ji = SpanningTree::arc(j, i, vertices);
        out[ij] = out[ji] = std::midpoint(scores[ij], scores[ji]);
      }
    }
  }
}

template void symmetrise(int64_t, int64_t, const float*, float*);
template void symmetrise(int64_t, int64_t, const double*, double*);

}  // namespace aimle
