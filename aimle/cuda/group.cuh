// The threads that work on one row together: a warp, or a whole block.
#pragma once

#include <cstdint>

namespace aimle::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;

template <int kThreads>
struct Group {
  static_assert(kThreads % 32 == 0 && kThreads > 0);

  __device__ static int rank() { return static_cast<int>(threadIdx.x) % kThreads; }
  __device__ static void sync() {
    if constexpr (kThreads == 32) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }

  /// combine(a, b) over the values of all threads, known to all of them; combine is associative and
  /// commutative.
  template <class Value, class Combine>
  __device__ static Value reduce(Value value, Combine combine) {
#pragma unroll
    for (int half = 16; half > 0; half /= 2) {
      value = combine(value, __shfl_xor_sync(kAllLanes, value, half));
    }
    return across_warps(value, combine);
  }

  __device__ static int sum(int value) {
    return across_warps(__reduce_add_sync(kAllLanes, value), [](int a, int b) { return a + b; });
  }

  template <class Value>
  __device__ static Value max(Value value) {
    return reduce(value, [](Value a, Value b) { return a > b ? a : b; });
  }
  template <class Value>
  __device__ static Value min(Value value) {
    return reduce(value, [](Value a, Value b) { return a < b ? a : b; });
  }
  __device__ static bool any(bool value) {
    if constexpr (kThreads == 32) {
      return __any_sync(kAllLanes, value);
    } else {
      return __syncthreads_or(value);
    }
  }

 private:
  /// From one value per warp to one for all.
  template <class Value, class Combine>
  __device__ static Value across_warps(Value value, Combine combine) {
    if constexpr (kThreads == 32) {
      return value;
    } else {
      __shared__ Value partial[kThreads / 32];
      if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
      __syncthreads();
      value = partial[0];
#pragma unroll
      for (int warp = 1; warp < kThreads / 32; ++warp) value = combine(value, partial[warp]);
      __syncthreads();
      return value;
    }
  }
};

}  // namespace aimle::cuda
