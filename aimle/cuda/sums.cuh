// Sums in the fixed order of aimle/estimate/fixed_sum.h and fixed_total.h, by a warp or by a block.
#pragma once

#include <cstdint>

#include "aimle/cuda/group.cuh"
#include "aimle/estimate/fixed_total.h"

namespace aimle::cuda {

static_assert(kSumLanes == 32);

/// fixed_sum by the calling warp; every lane gets it.
template <class Term>
__device__ __forceinline__ double warp_fixed_sum(int64_t n, Term term) {
  double partial = 0.0;
#pragma unroll 8
  for (int64_t j = threadIdx.x % 32; j < n; j += 32) partial += term(j);
#pragma unroll
  for (int half = 16; half > 0; half /= 2) {
    partial += __shfl_down_sync(kAllLanes, partial, half);
  }
  return __shfl_sync(kAllLanes, partial, 0);
}

/// fixed_sum by one thread.
template <class Term>
__device__ double thread_fixed_sum(int64_t n, Term term) {
  if (n == 1) return term(0);
  if (n <= 4) return (term(0) + (n > 2 ? term(2) : 0.0)) + (term(1) + (n > 3 ? term(3) : 0.0));
  double partial[kSumLanes];
  for (int lane = 0; lane < kSumLanes; ++lane) partial[lane] = lane < n ? term(lane) : 0.0;
  for (int64_t j = kSumLanes; j < n; ++j) partial[j % kSumLanes] += term(j);
  for (int half = kSumLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) partial[lane] += partial[lane + half];
  }
  return partial[0];
}

/// Doubles of device memory that block_fixed_total wants for n terms.
inline int64_t fixed_total_scratch(int64_t n) { return n / kSumChunk + n / (kSumChunk * 512) + 8; }

/// fixed_total by the calling block; every thread gets it. `scratch` is the block's own.
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
