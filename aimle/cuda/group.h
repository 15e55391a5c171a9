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
#include "aimle/map/one_thread.h"

#if defined(__CUDACC__)
#define AIMLE_DEVICE __device__ __forceinline__
#else
#define AIMLE_DEVICE inline
#endif

namespace aimle::cuda {

using aimle::detail::OneThread;

}  // namespace aimle::cuda
