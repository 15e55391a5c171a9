// Groups: the threads that work on one row together.
//
// Device algorithms are templates over a group, so that the same text serves a warp per row (short
// rows, many of them), a block per row (long ones) and, in tests, threads in lockstep on the host
// (tests/cuda/lockstep.h), which finds a missing `sync` without a GPU. A group has
//
//   int rank(), size()
//   void sync()           what was written to the row's memory before is seen after
//   bool any(bool)        true for all if true for one; also a sync
//   Word max(Word)        the largest, for all; Word is uint32_t or uint64_t; also a sync
//
// Every thread of the group must make the same calls in the same order.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define AIMLE_DEVICE __device__ __forceinline__
#else
#define AIMLE_DEVICE inline
#endif

namespace aimle::cuda {

#if defined(__CUDACC__)

/// The 32 threads of a warp.
struct Warp {
  static constexpr int kSize = 32;
  static constexpr uint32_t kAll = 0xffffffff;

  AIMLE_DEVICE int rank() const { return static_cast<int>(threadIdx.x) % kSize; }
  AIMLE_DEVICE int size() const { return kSize; }
  AIMLE_DEVICE void sync() const { __syncwarp(); }
  AIMLE_DEVICE bool any(bool mine) const {
    __syncwarp();
    return __any_sync(kAll, mine);
  }
  AIMLE_DEVICE uint32_t max(uint32_t mine) const {
    __syncwarp();
    return __reduce_max_sync(kAll, mine);
  }
  AIMLE_DEVICE uint64_t max(uint64_t mine) const {
    const auto high = static_cast<uint32_t>(mine >> 32);
    const uint32_t highest = max(high);
    const uint32_t low = __reduce_max_sync(kAll, high == highest ? static_cast<uint32_t>(mine) : 0);
    return static_cast<uint64_t>(highest) << 32 | low;
  }
};

/// All threads of a block, a multiple of 32. `slots` is shared memory of the group's own.
class Block {
 public:
  static constexpr int kMaxWarps = 32;
  struct Slots {
    uint64_t word[2][kMaxWarps];
  };

  AIMLE_DEVICE explicit Block(Slots& slots) : slots_(slots) {}

  AIMLE_DEVICE int rank() const { return static_cast<int>(threadIdx.x); }
  AIMLE_DEVICE int size() const { return static_cast<int>(blockDim.x); }
  AIMLE_DEVICE void sync() const { __syncthreads(); }
  AIMLE_DEVICE bool any(bool mine) const { return __syncthreads_or(mine) != 0; }

  template <class Word>
  AIMLE_DEVICE Word max(Word mine) {
    const Warp warp;
    const int lane = rank() % Warp::kSize, warps = size() / Warp::kSize;
    uint64_t* slot = slots_.word[turn_];
    turn_ ^= 1;  // so that one sync is enough: the others may already write the next call's words
    mine = warp.max(mine);
    if (lane == 0) slot[rank() / Warp::kSize] = mine;
    __syncthreads();
    return warp.max(lane < warps ? static_cast<Word>(slot[lane]) : Word{0});
  }

 private:
  Slots& slots_;
  int turn_ = 0;
};

#endif  // __CUDACC__

}  // namespace aimle::cuda
