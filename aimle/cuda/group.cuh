// The threads that process one row together: a warp, or a whole block. See group.h.
#pragma once

#include <cstdint>
#include <type_traits>

#include "aimle/cuda/group.h"

namespace aimle::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;

template <int kThreads>
struct Group {
  static_assert(kThreads % 32 == 0 && kThreads > 0);

  __device__ static int rank() { return static_cast<int>(threadIdx.x) % kThreads; }
  __device__ static constexpr int size() { return kThreads; }
  __device__ static void sync() {
    if constexpr (kThreads == 32) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }

  /// combine(a, b) over the values of all threads, returned to all of them; combine is associative
  /// and commutative.
  template <class Value, class Combine>
  __device__ static Value reduce(Value value, Combine combine) {
    if constexpr (kThreads == 32) __syncwarp();
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
    const auto larger = [](Value a, Value b) { return a > b ? a : b; };
    if constexpr (std::is_unsigned_v<Value> && sizeof(Value) >= 4) {
      if constexpr (kThreads == 32) __syncwarp();
      return across_warps(max_of_warp(value), larger);
    } else {
      return reduce(value, larger);
    }
  }
  template <class Value>
  __device__ static Value min(Value value) {
    return reduce(value, [](Value a, Value b) { return a < b ? a : b; });
  }
  __device__ static bool any(bool value) {
    if constexpr (kThreads == 32) {
      __syncwarp();
      return __any_sync(kAllLanes, value);
    } else {
      return __syncthreads_or(value);
    }
  }

 private:
  /// In one or two instructions.
  template <class Word>
  __device__ static Word max_of_warp(Word word) {
    if constexpr (sizeof(Word) == 4) {
      return __reduce_max_sync(kAllLanes, word);
    } else {
      const auto high = static_cast<uint32_t>(word >> 32);
      const uint32_t highest = __reduce_max_sync(kAllLanes, high);
      const auto low = high == highest ? static_cast<uint32_t>(word) : 0u;
      return static_cast<Word>(highest) << 32 | __reduce_max_sync(kAllLanes, low);
    }
  }

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
