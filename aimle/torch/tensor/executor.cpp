#include "aimle/torch/tensor/executor.h"

#include <ATen/Parallel.h>

namespace aimle::ops {

Executor torch_threads() {
  if (at::in_parallel_region()) return sequential();
#ifdef INTRA_OP_PARALLEL
  return {.threads = at::get_num_threads(),
          .run = [](int64_t parts, FunctionRef<void(int64_t)> part) {
            at::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) part(i);
            });
          }};
#else  // a compiler whose OpenMP is not the one torch was built with
  return thread_pool(at::get_num_threads());
#endif
}

}  // namespace aimle::ops
