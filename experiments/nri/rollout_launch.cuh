// Blocks and warps of the rollout's kernels.
#pragma once

#include <cstdint>

#include "aimle/cuda/launch.cuh"

namespace aimle::experiments::nri {

inline constexpr int kThreads = 256, kWarps = kThreads / 32;  // of a block
inline constexpr unsigned kWholeWarp = 0xffffffff;

/// The item of this warp, if every warp has one.
__device__ __forceinline__ int64_t item_of_warp() {
  return static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
}

__device__ __forceinline__ int lane_of_warp() { return static_cast<int>(threadIdx.x % 32); }

__device__ __forceinline__ float sum_of_warp(float x) {
  for (int mask = 16; mask > 0; mask /= 2) x += __shfl_xor_sync(kWholeWarp, x, mask);
  return x;
}

/// Starts a kernel with `per_block` of the items in each block.
template <class... Parameters, class... Args>
void launch(const char* name, void (*kernel)(Parameters...), int64_t items, int64_t per_block,
            void* stream, Args... args) {
  if (items == 0) return;
  cuda::start(kernel, static_cast<unsigned>((items + per_block - 1) / per_block), kThreads, 0,
              static_cast<cudaStream_t>(stream), args...);
  cuda::check(cudaGetLastError(), name);
}

}  // namespace aimle::experiments::nri
