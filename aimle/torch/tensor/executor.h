// An Executor that uses PyTorch's own threads, so that torch.set_num_threads applies and the two
// libraries do not compete for cores.
#pragma once

#include "aimle/base/parallel.h"

namespace aimle::ops {

/// The current at::get_num_threads(); one inside a parallel region of PyTorch.
Executor torch_threads();

}  // namespace aimle::ops
