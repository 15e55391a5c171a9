// Splits rows over threads.
//
// Work below kMinParallelNs is done by the calling thread: waking a helper costs 10-18 µs. Results
// never depend on the split, because every row is computed only from its own inputs.
#pragma once

#include <cstdint>

#include "aimle/base/function_ref.h"

namespace aimle {

/// Runs the parts. The core provides `sequential()` and `thread_pool(n)`; the Torch binding
/// provides one that uses PyTorch's own threads, so that the two do not compete for cores.
struct Executor {
  int threads = 1;
  /// Calls `part(i)` for every i in [0, parts), in any order, on any thread, and returns when all
  /// are done. The first exception of a part is rethrown.
  void (*run)(int64_t parts, FunctionRef<void(int64_t)> part) = nullptr;
};

Executor sequential();

/// `threads` threads of the process's pool, including the caller. The helpers sleep between calls.
/// 0 means one thread per core.
Executor thread_pool(int threads = 0);

inline constexpr double kMinParallelNs = 100'000;

/// Calls `body(begin, end)` on disjoint ranges that cover [0, count). `ns_per_item` is a rough cost
/// that determines how many threads are worth waking.
void parallel_for(const Executor& executor, int64_t count, double ns_per_item,
                  FunctionRef<void(int64_t begin, int64_t end)> body);

}  // namespace aimle
