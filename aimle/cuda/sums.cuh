// Sums in the fixed order of aimle/estimate/fixed_sum.h and fixed_total.h, by a warp or by a block.
#pragma once

#include <cstdint>

#include "aimle/cuda/group.cuh"
#include "aimle/estimate/fixed_total.h"

namespace aimle::cuda {

static_assert(kSumLanes == 32);

/// fixed_sum of use(load(j)) by the calling warp; every lane gets the result. Loads precede uses,
/// kAtOnce at a time, so that a lane waits for memory only once for all of them.
template <int kAtOnce = 8, class Load, class Use>
__device__ __forceinline__ double warp_fixed_sum(int64_t n, Load load, Use use) {
  double partial = 0.0;
  for (int64_t first = threadIdx.x % 32; first < n; first += 32 * kAtOnce) {
    decltype(load(first)) loaded[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + 32 * i < n) loaded[i] = load(first + 32 * i);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + 32 * i < n) partial += use(loaded[i]);
    }
  }
#pragma unroll
  for (int half = 16; half > 0; half /= 2) {
    partial += __shfl_down_sync(kAllLanes, partial, half);
  }
  return __shfl_sync(kAllLanes, partial, 0);
}
template <int kAtOnce = 8, class Term>
__device__ __forceinline__ double warp_fixed_sum(int64_t n, Term term) {
  return warp_fixed_sum<kAtOnce>(n, term, [](double x) { return x; });
}

/// Doubles of device memory that block_fixed_total needs for n terms.
inline int64_t fixed_total_scratch(int64_t n) { return n / kSumChunk + n / (kSumChunk * 512) + 8; }

/// fixed_total by the calling block; every thread gets the result. `scratch` is the block's own.
template <class Term>
__device__ double block_fixed_total(int64_t n, Term term, double* scratch) {
  const int warp = static_cast<int>(threadIdx.x) / 32, warps = static_cast<int>(blockDim.x) / 32;
  const auto sum_chunks = [&](int64_t count, auto value, double* out) {
    const int64_t chunks = count <= kSumChunk ? 1 : (count + kSumChunk - 1) / kSumChunk;
    for (int64_t c = warp; c < chunks; c += warps) {
      const int64_t begin = c * kSumChunk;
      const int64_t length = count - begin < kSumChunk ? count - begin : kSumChunk;
      const double sum = warp_fixed_sum(length, [&](int64_t j) { return value(begin + j); });
      if (threadIdx.x % 32 == 0) out[c] = sum;
    }
    __syncthreads();
    return chunks;
  };
  int64_t left = sum_chunks(n, term, scratch);
  while (left > 1) {
    const double* sums = scratch;
    scratch += left;
    left = sum_chunks(
        left, [=](int64_t c) { return sums[c]; }, scratch);
  }
  const double total = scratch[0];
  __syncthreads();
  return total;
}

}  // namespace aimle::cuda
