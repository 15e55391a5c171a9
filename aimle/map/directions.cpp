#include "aimle/map/directions.h"

#include "aimle/map/spanning_tree.h"

namespace aimle {
namespace {

/// Calls visit(edge, both of its directed entries) for all edges of a graph, in their order.
template <class Visit>
void for_each_edge(int64_t vertices, Visit visit) {
  int64_t edge = 0;
  for (int64_t i = 0; i < vertices; ++i) {
    for (int64_t j = i + 1; j < vertices; ++j, ++edge) {
      visit(edge, SpanningTree::arc(i, j, vertices), SpanningTree::arc(j, i, vertices));
    }
  }
}

}  // namespace

template <class T>
void fold_directions(int64_t vertices, int64_t count, const T* directed, T* undirected) {
  const int64_t entries = vertices * (vertices - 1);
  for (int64_t r = 0; r < count; ++r, directed += entries, undirected += entries / 2) {
    for_each_edge(vertices, [&](int64_t edge, int64_t ij, int64_t ji) {
      undirected[edge] = folded(directed[ij], directed[ji]);
    });
  }
}

template <class T>
void spread_directions(int64_t vertices, int64_t count, const T* undirected, T* directed) {
  const int64_t entries = vertices * (vertices - 1);
  for (int64_t r = 0; r < count; ++r, directed += entries, undirected += entries / 2) {
    for_each_edge(vertices, [&](int64_t edge, int64_t ij, int64_t ji) {
      directed[ij] = directed[ji] = undirected[edge];
    });
  }
}

template void fold_directions(int64_t, int64_t, const float*, float*);
template void spread_directions(int64_t, int64_t, const float*, float*);
template void fold_directions(int64_t, int64_t, const double*, double*);
template void spread_directions(int64_t, int64_t, const double*, double*);
template void fold_directions(int64_t, int64_t, const bool*, bool*);
template void spread_directions(int64_t, int64_t, const bool*, bool*);

}  // namespace aimle
