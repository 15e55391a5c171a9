#include "aimle/map/spanning_tree.h"

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <vector>

#include "aimle/base/check.h"
#include "aimle/base/isa.h"
#include "aimle/base/ordered_bits.h"
#include "aimle/map/declaration.h"
#include "aimle/map/each_row.h"
#include "aimle/map/spanning_tree_avx2.h"

namespace aimle {
namespace {

using Layout = SpanningTree::Layout;

/// One row as a graph: the weight of an edge, whether it is unmasked, and where it is written.
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

__extension__ using uint128 = unsigned __int128;

/// An edge as one number: its weight, mapped to integers in the same order, in the upper bits, and
/// its ends, with earlier ones larger, in the lower bits. The larger key is the better edge,
/// without ties; 0 is no edge. Maxima of integers compile to branch-free code; branches would be
/// mispredicted.
template <class T>
struct EdgeKey {
  using Value = std::conditional_t<std::is_same_v<T, float>, uint64_t, uint128>;

  static Value of(T weight, int64_t i, int64_t j) {
    return Value{ordered(weight)} << 32 | static_cast<uint32_t>(~(i << 16 | j));
  }
  static int64_t first(Value key) { return ~static_cast<uint32_t>(key) >> 16; }
  static int64_t second(Value key) { return ~static_cast<uint32_t>(key) & 0xffff; }
};

/// The vertices outside the tree, each with the best edge that joins it, unordered.
template <class T>
struct Frontier {
  std::vector<typename EdgeKey<T>::Value> edge;
  std::vector<int64_t> vertex;
  std::vector<int64_t> position;  // of each vertex, or kInside

  static constexpr int64_t kInside = -1;

  explicit Frontier(int64_t n)
      : edge(static_cast<size_t>(n)), vertex(edge.size()), position(vertex) {}
};

/// Dense Prim. The keys order the edges strictly, so the tree is unique.
template <Layout layout, class T>
Status solve_row(const Graph<layout, T>& graph, Frontier<T>& frontier, T* z) {
  using Key = EdgeKey<T>;
  const int64_t n = graph.n;
  auto* edge = frontier.edge.data();
  int64_t* vertex = frontier.vertex.data();
  int64_t* position = frontier.position.data();
  for (int64_t c = 0; c < n - 1; ++c) {
    edge[c] = 0;
    vertex[c] = c + 1;
    position[c + 1] = c;
  }
  position[0] = Frontier<T>::kInside;
  bool nan = false;
  int64_t joined = 0;
  for (int64_t outside = n - 1; outside > 0; --outside) {
    typename Key::Value best = 0;
    for (int64_t c = 0; c < outside; ++c) {
      const int64_t i = std::min(joined, vertex[c]);
      const int64_t j = std::max(joined, vertex[c]);
      const T weight = graph.weight(i, j);
      const bool exists = graph.has(i, j);
      nan |= exists & (weight != weight);
      edge[c] = std::max(edge[c], exists ? Key::of(weight, i, j) : 0);
      best = std::max(best, edge[c]);
    }
    if (best == 0) return graph.has_nan() ? Status::kNaN : Status::kDisconnected;
    const int64_t i = Key::first(best);
    const int64_t j = Key::second(best);
    graph.choose(i, j, z);
    joined = position[i] == Frontier<T>::kInside ? j : i;
    const int64_t hole = position[joined];
    edge[hole] = edge[outside - 1];
    vertex[hole] = vertex[outside - 1];
    position[vertex[hole]] = hole;
    position[joined] = Frontier<T>::kInside;
  }
  return nan ? Status::kNaN : Status::kOk;
}

template <Layout layout, class T>
void solve_layout(const SpanningTree& solver, const Rows<T>& rows) {
  const int64_t size = solver.size();
  Frontier<T> frontier(solver.vertices);
  detail::solve_each_row(rows, size, [&](const T* x, const bool* mask, T* z, int64_t) {
    std::fill_n(z, size, T{0});
    return solve_row(Graph<layout, T>{.n = solver.vertices, .x = x, .mask = mask}, frontier, z);
  });
}

template <class T>
void solve_portable(const SpanningTree& solver, const Rows<T>& rows) {
  if (solver.layout == Layout::kUndirected) {
    solve_layout<Layout::kUndirected>(solver, rows);
  } else {
    solve_layout<Layout::kDirected>(solver, rows);
  }
}

void solve_one_portable(const avx2::TreeRows& trees, int64_t row) {
  const SpanningTree solver{.vertices = trees.vertices,
                            .layout = trees.directed ? Layout::kDirected : Layout::kUndirected};
  const Rows<float> rows{
      .count = trees.count, .scores = trees.scores, .z = trees.z, .status = trees.status};
  solve_portable(solver, slice(rows, solver.size(), row, row + 1));
}

/// False if there is no kernel for these rows.
bool solve_avx2(const SpanningTree& solver, const Rows<float>& rows) {
  if constexpr (kBuiltWithAvx2) {
    const int64_t n = solver.vertices;
    const bool fits = avx2::kMinClosureVertices <= n && n <= avx2::kMaxPrimVertices;
    if (isa() < Isa::kAvx2 || !fits || rows.mask != nullptr) return false;
    const avx2::TreeRows trees{.vertices = n,
                               .directed = solver.layout == Layout::kDirected,
                               .count = rows.count,
                               .scores = rows.scores,
                               .z = rows.z,
                               .status = rows.status,
                               .solve_one = solve_one_portable};
    if (n <= avx2::kMaxClosureVertices) {
      avx2::solve_by_closure(trees);
    } else {
      std::vector<float> scratch(static_cast<size_t>(avx2::prim_scratch(n)));
      avx2::solve_by_prim(trees, scratch.data());
    }
    return true;
  }
  return false;
}

}  // namespace

void SpanningTree::validate() const {
  AIMLE_CHECK(1 <= vertices && vertices <= kMaxVertices,
              "[aimle::spanning_tree] expected 1 <= vertices <= ", kMaxVertices,
              " but got vertices=", vertices);
}

void SpanningTree::declare(Declaration<SpanningTree>& solver) {
  solver.summary = "the maximum spanning tree of the complete graph";
  solver.ties = "the lower edge wins, undirected edges in the order (0,1), (0,2), ... (1,2), ...";
  solver.setting("n", &SpanningTree::vertices, {0, kMaxVertices},
                 "vertices; 0: inferred from n(n-1)/2 entries of theta");
}

void SpanningTree::fit(Shape instance) {
  const int64_t entries = instance[0];
  if (vertices == 0) {
    while (edges() < entries && vertices < kMaxVertices) ++vertices;
    AIMLE_CHECK(edges() == entries && vertices >= 2,
                "[aimle::spanning_tree] expected theta of n(n-1)/2 entries (1, 3, 6, 10, ...) but "
                "got ",
                entries, ": set n if both directions of an edge have an entry");
    return;
  }
  validate();
  if (entries == 2 * edges()) layout = Layout::kDirected;
  AIMLE_CHECK(entries == size(), "[aimle::spanning_tree] expected scores of ", edges(),
              " (undirected) or ", 2 * edges(), " (directed) entries for n=", vertices,
              " but the last dimension is ", entries);
}

void solve_rows(const SpanningTree& solver, const Rows<float>& rows) {
  if (!solve_avx2(solver, rows)) solve_portable(solver, rows);
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
