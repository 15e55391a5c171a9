#include "aimle/cuda/directions.h"

#include "aimle/cuda/launch.cuh"
#include "aimle/cuda/row.cuh"
#include "aimle/map/directions.h"

namespace aimle::cuda {
namespace {

constexpr int kThreads = 256;

/// A directed entry, counted over all rows: its opposite, and the edge of both.
struct Place {
  int64_t opposite;
  int64_t edge;
  bool first;  // of the edge's two entries
};

__device__ __forceinline__ Place place_of(int64_t e, int64_t vertices) {
  const Split line = split(e, vertices - 1);  // a receiver of some row, and where its sender is
  const Split row = split(line.quotient, vertices);
  const int64_t receiver = row.rest;
  const int64_t sender = line.rest + (line.rest >= receiver ? 1 : 0);
  const bool first = receiver < sender;
  const int64_t low = first ? receiver : sender, high = first ? sender : receiver;
  return {.opposite = (row.quotient * vertices + sender) * (vertices - 1) + receiver -
                      (receiver > sender ? 1 : 0),
          .edge = row.quotient * (vertices * (vertices - 1) / 2) +
                  SpanningTree::edge(low, high, vertices),
          .first = first};
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    fold_kernel(int64_t vertices, int64_t entries, const T* directed, T* undirected) {
  for (int64_t e = int64_t{blockIdx.x} * kThreads + threadIdx.x; e < entries;
       e += int64_t{gridDim.x} * kThreads) {
    const Place place = place_of(e, vertices);
    if (place.first) undirected[place.edge] = folded(directed[e], directed[place.opposite]);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    spread_kernel(int64_t vertices, int64_t entries, const T* undirected, T* directed) {
  for (int64_t e = int64_t{blockIdx.x} * kThreads + threadIdx.x; e < entries;
       e += int64_t{gridDim.x} * kThreads) {
    directed[e] = undirected[place_of(e, vertices).edge];
  }
}

}  // namespace

template <class T>
void fold_directions(int64_t vertices, int64_t count, const T* directed, T* undirected,
                     const Context& context) {
  const int64_t entries = count * vertices * (vertices - 1);
  if (entries == 0) return;
  launch("fold_directions", fold_kernel<T>, blocks_for(entries, kThreads), kThreads, 0, context,
         vertices, entries, directed, undirected);
}

template <class T>
void spread_directions(int64_t vertices, int64_t count, const T* undirected, T* directed,
                       const Context& context) {
  const int64_t entries = count * vertices * (vertices - 1);
  if (entries == 0) return;
  launch("spread_directions", spread_kernel<T>, blocks_for(entries, kThreads), kThreads, 0, context,
         vertices, entries, undirected, directed);
}

#define AIMLE_INSTANTIATE(T)                                                     \
  template void fold_directions(int64_t, int64_t, const T*, T*, const Context&); \
  template void spread_directions(int64_t, int64_t, const T*, T*, const Context&);

AIMLE_INSTANTIATE(float)
AIMLE_INSTANTIATE(double)
AIMLE_INSTANTIATE(bool)

}  // namespace aimle::cuda
