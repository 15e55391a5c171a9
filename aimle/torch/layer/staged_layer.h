// The layer of C++ programs for solvers that are functions: the staged ops (layer_ops.h), one after
// the other, with calls of the function in between. The same steps as
// python/aimle/callable_solver/staged.py.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include "aimle/torch/layer.h"

namespace aimle::ops {

/// One call, its arguments in the order of layer_schema.h.
struct StagedCall {
  SolverFunction function;
  torch::jit::Stack inputs;
  torch::jit::Stack state;
  torch::jit::Stack settings;
  at::Tensor sizes;  // of solutions seen (solution_sizes.h); undefined if the size is declared
};

/// z, with a gradient for theta.
at::Tensor staged_map(StagedCall call);

}  // namespace aimle::ops
