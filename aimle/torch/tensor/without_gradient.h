// For ops whose results do not depend on their inputs in a way that can be differentiated.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/library.h>

namespace aimle::ops {

inline void call_without_gradient(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  op.callBoxed(stack);
}

/// The kernel for the dispatch key Autograd: the op itself, its results without a gradient.
inline torch::CppFunction without_gradient() {
  return torch::CppFunction::makeFromBoxedFunction<&call_without_gradient>();
}

}  // namespace aimle::ops
