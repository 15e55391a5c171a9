// An Executor over PyTorch's own threads, so that torch.set_num_threads is obeyed and the two
// libraries never compete for the same cores.
#pragma once

#include "aimle/base/parallel.h"

namespace aimle::ops {

/// As many threads as `at::get_num_threads()` says now; one inside a parallel region of PyTorch.
Executor torch_threads();

}  // namespace aimle::ops
