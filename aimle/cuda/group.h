// Groups: the threads that process one row together.
//
// Device algorithms are templates over a group, so that the same source serves a warp per row
// (short rows, many of them), a block per row (long ones; both in group.cuh) and, in tests, threads
// in lockstep on the host (tests/cuda/lockstep.h), which detect a missing `sync` without a GPU. A
// group has
//
//   int rank(), size()
//   void sync()                   writes to the row's memory before it are visible after it
//   bool any(bool)                true for all if true for one
//   Word max(Word)                the largest, for all; Word is uint32_t or uint64_t
//   Value reduce(Value, combine)  combine(a, b) over all values, for all, in a fixed order
//
// The last three also synchronise. Every thread of the group makes the same calls in the same
// order.
#pragma once

#include "aimle/base/combine.h"

#if defined(__CUDACC__)
#define AIMLE_DEVICE __device__ __forceinline__
#else
#define AIMLE_DEVICE inline
#endif

namespace aimle::cuda {

/// The group of a single thread.
struct OneThread {
  AIMLE_DEVICE static int rank() { return 0; }
  AIMLE_DEVICE static constexpr int size() { return 1; }
  AIMLE_DEVICE static void sync() {}
  AIMLE_DEVICE static bool any(bool value) { return value; }
  template <class Value>
  AIMLE_DEVICE static Value max(Value value) {
    return value;
  }
  template <class Value, class Combine>
  AIMLE_DEVICE static Value reduce(Value value, const Combine&) {
    return value;
  }
};

}  // namespace aimle::cuda
