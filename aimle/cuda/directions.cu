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

/// std::midpoint, which the host uses.
template <class T>
__device__ __forceinline__ T midpoint(T a, T b) {
  constexpr T kSmall =
      sizeof(T) == 4 ? T(0x1p-125) : T(0x1p-1021);  // twice the least normal number
  constexpr T kLarge = sizeof(T) == 4 ? T(0x1.fffffep+126) : T(0x1.fffffffffffffp+1022);
  const T size_a = a < 0 ? -a : a, size_b = b < 0 ? -b : b;
  if (size_a <= kLarge && size_b <= kLarge) return (a + b) / 2;
  if (size_a < kSmall) return a + b / 2;
  if (size_b < kSmall) return a / 2 + b;
  return a / 2 + b / 2;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    symmetrise_kernel(int64_t vertices, int64_t entries, const T* scores, T* out) {
  for (int64_t e = int64_t{blockIdx.x} * kThreads + threadIdx.x; e < entries;
       e += int64_t{gridDim.x} * kThreads) {
    const Place place = place_of(e, vertices);
    const int64_t first = place.first ? e : place.opposite;
    const int64_t second = place.first ? place.opposite : e;
    out[e] = midpoint(scores[first], scores[second]);
  }
}

/// Starts a kernel with a thread for each directed entry.
template <class T>
void launch_by_entry(const char* op, void (*kernel)(int64_t, int64_t, const T*, T*),
                     int64_t vertices, int64_t count, const T* from, T* to,
                     const Context& context) {
  const int64_t entries = count * vertices * (vertices - 1);
  if (entries == 0) return;
  launch(op, kernel, blocks_for(entries, kThreads), kThreads, 0, context, vertices, entries, from,
         to);
}

}  // namespace

template <class T>
void fold_directions(int64_t vertices, int64_t count, const T* directed, T* undirected,
                     const Context& context) {
  launch_by_entry("fold_directions", fold_kernel<T>, vertices, count, directed, undirected,
                  context);
}

template <class T>
void spread_directions(int64_t vertices, int64_t count, const T* undirected, T* directed,
                       const Context& context) {
  launch_by_entry("spread_directions", spread_kernel<T>, vertices, count, undirected, directed,
                  context);
}

template <class T>
void symmetrise(int64_t vertices, int64_t count, const T* scores, T* out, const Context& context) {
  launch_by_entry("symmetrise", symmetrise_kernel<T>, vertices, count, scores, out, context);
}

#define AIMLE_INSTANTIATE(T)                                                     \
  template void fold_directions(int64_t, int64_t, const T*, T*, const Context&); \
  template void spread_directions(int64_t, int64_t, const T*, T*, const Context&);

AIMLE_INSTANTIATE(float)
AIMLE_INSTANTIATE(double)
AIMLE_INSTANTIATE(bool)
template void symmetrise(int64_t, int64_t, const float*, float*, const Context&);
template void symmetrise(int64_t, int64_t, const double*, double*, const Context&);

}  // namespace aimle::cuda
