// The layer ops as C++ functions. Each reads its arguments from the stack in the order of its
// schema (layer_autograd.cpp) and is registered boxed, so that a setting is named in only one
// place.
//
//   perturbed_map           inputs, state (read), settings               -> z, differentiable;
//                           without a key it draws one
//   perturbed_map_forward   inputs, settings                             -> z, bits
//   perturbed_map_backward  dy, bits, inputs, state (written), settings  -> dtheta
//
// For callable solvers, the same in stages:
//
//   perturb                 inputs, settings                             -> x
//   step                    dy, inputs, alpha, updates, sizes, settings  -> x_left, x_right,
//                                                                           lambda, counted
//   difference              z_left, z_right, lambda, counted, inputs, state (written), settings
//                                                                        -> dtheta
//   straight_through        dy, inputs, settings                         -> dtheta
//
// If several processes update the state together (LayerState::waiting), the update from the sum of
// their counts:
//
//   apply_counts            counts, state (written), settings
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <tuple>
#include <utility>

#include "aimle/torch/layer/layer_arguments.h"
#include "aimle/torch/layer/layer_schema.h"

namespace aimle::ops {

/// Takes values from the front of a list of arguments, in order.
class ArgumentReader {
 public:
  explicit ArgumentReader(at::ArrayRef<c10::IValue> arguments) : arguments_(arguments) {}

  at::Tensor tensor() { return arguments_[next_++].toTensor(); }
  std::optional<at::Tensor> optional_tensor() {
    const c10::IValue& value = arguments_[next_++];
    if (value.isNone()) return std::nullopt;
    return value.toTensor();
  }
  at::Tensor tensor_or_undefined() { return optional_tensor().value_or(at::Tensor()); }

  LayerInput input() {
    LayerInput result;
    result.theta = tensor();
    result.key = tensor();
    result.mask = optional_tensor();
    result.row_data = optional_tensor();
    result.table = optional_tensor();
    return result;
  }

  LayerState state() {
    LayerState result;
    result.alpha = tensor_or_undefined();
    result.gbar = tensor_or_undefined();
    result.updates = tensor_or_undefined();
    result.memory = tensor_or_undefined();
    result.stats = tensor_or_undefined();
    return result;
  }

  /// The next values, unchanged.
  at::ArrayRef<c10::IValue> take(size_t count) {
    next_ += count;
    return arguments_.slice(next_ - count, count);
  }

  /// Valid as long as the reader.
  const LayerSettings& settings() {
    settings_ = layer_settings(raw_settings());
    return settings_;
  }

  /// To be passed on to another op; always the last arguments.
  at::ArrayRef<c10::IValue> raw_settings() {
    return arguments_.slice(arguments_.size() - kLayerSettingsCount);
  }

 private:
  at::ArrayRef<c10::IValue> arguments_;
  size_t next_ = 0;
  LayerSettings settings_;
};

/// Runs `op(reader)`, whose result is a tensor or a tuple of tensors, as a boxed kernel.
template <auto op>
void boxed(const c10::OperatorHandle& handle, torch::jit::Stack* stack) {
  const size_t count = handle.schema().arguments().size();
  ArgumentReader reader(at::ArrayRef<c10::IValue>(*stack).slice(stack->size() - count));
  auto result = op(reader);
  torch::jit::drop(*stack, count);
  if constexpr (std::is_same_v<decltype(result), at::Tensor>) {
    torch::jit::push(*stack, std::move(result));
  } else {
    std::apply(
        [&](auto&&... parts) {
          (torch::jit::push(*stack, std::forward<decltype(parts)>(parts)), ...);
        },
        std::move(result));
  }
}

template <auto op>
void impl_boxed(torch::Library& library, const char* name) {
  library.impl(name, torch::CppFunction::makeFromBoxedFunction<&boxed<op>>());
}

}  // namespace aimle::ops
