// Rows with centred noise, for solvers whose solutions vary in size, and for those of costs, which
// must not be below zero.
#pragma once

#include "aimle/cuda/direct_output.cuh"
#include "aimle/cuda/row.cuh"

namespace aimle::cuda {

/// The scores of a row under centred noise.
template <class T>
struct CentredScores {
  const Row<T>& row;

  template <class Body>
  __device__ __forceinline__ void for_each(int rank, int threads, const Body& body) const {
    const T shift = row.centring();
    QuadScores<T>{row}.for_each(rank, threads, [&](int64_t j, T score) { body(j, score - shift); });
  }
};

/// The costs of a row with centred noise, and this thread's counts: costs below zero times 2^32,
/// plus all costs that are not walls.
template <class T>
struct Costs {
  const Row<T>& row;
  unsigned long long& seen;

  template <class Body>
  __device__ __forceinline__ void for_each(int rank, int threads, const Body& body) const {
    const bool* mask = row.mask();
    CentredScores<T>{row}.for_each(rank, threads, [&](int64_t j, T cost) {
      if (cost < static_cast<T>(INFINITY) && (mask == nullptr || mask[j])) {
        seen += cost < T(0) ? (1ull << 32) + 1 : 1;
      }
      body(j, cost);
    });
  }
};

/// Adds the counts of all threads to RowSink::clipped, if requested.
template <class Group>
__device__ __forceinline__ void count_clipped(Group& group, unsigned long long seen,
                                              unsigned long long* clipped) {
  if (clipped == nullptr) return;
  seen = group.reduce(seen, [](unsigned long long a, unsigned long long b) { return a + b; });
  if (group.rank() == 0) {
    atomicAdd(clipped, seen >> 32);
    atomicAdd(clipped + 1, seen & 0xffffffffull);
  }
}

}  // namespace aimle::cuda
