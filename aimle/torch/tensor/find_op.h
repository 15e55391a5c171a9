// The ops of this library, called through PyTorch's dispatcher.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>
#include <utility>

namespace aimle::ops {

/// By its full name, "aimle::solve".
inline c10::OperatorHandle find_op(const std::string& name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "");
}
template <class Signature>
c10::TypedOperatorHandle<Signature> find_op(const std::string& name) {
  return find_op(name).typed<Signature>();
}

/// Calls the op with all of its arguments, and returns its results.
inline torch::jit::Stack call_op(const std::string& name, torch::jit::Stack stack) {
  find_op(name).callBoxed(stack);
  return stack;
}

}  // namespace aimle::ops
