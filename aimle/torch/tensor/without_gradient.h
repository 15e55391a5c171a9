// For ops whose results are not differentiable with respect to their inputs.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/library.h>

namespace aimle::ops {

inline void call_without_gradient(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  op.callBoxed(stack);
}

/// The kernel for the dispatch key Autograd: calls the op; its results have no gradient.
inline torch::CppFunction without_gradient() {
  return torch::CppFunction::makeFromBoxedFunction<&call_without_gradient>();
}

}  // namespace aimle::ops
