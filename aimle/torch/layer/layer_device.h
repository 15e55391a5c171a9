// The layer ops, written once for all devices. A device is a struct of static functions on typed
// pointers, which compute and, depending on `check`, throw:
//
//   result_type(call)                  of the tensor that forward writes
//   forward<T>(call, solver, z, bits)  z and dy are tensors, everything else pointers
//   backward<T>(call, solver, dy, bits, state, dtheta)
//   perturb<T>(call, x)
//   step<T>(call, dy, state, x_left, x_right, lambda, counted)
//   difference<T>(call, z_left, z_right, lambda, counted, state, dtheta)
//   straight_through<T>(call, dy, dtheta)
//   apply_counts(settings, counts, state)
//
// One file per device defines it and registers the ops (layer_cpu.cpp, layer_cuda.cpp).
#pragma once

#include <torch/library.h>

#include <tuple>

#include "aimle/torch/layer/layer_ops.h"
#include "aimle/torch/layer/solution_sizes.h"
#include "aimle/torch/tensor/dtype.h"
#include "aimle/torch/tensor/empty.h"
#include "aimle/torch/tensor/value_error.h"

namespace aimle::ops {

using Two = std::tuple<at::Tensor, at::Tensor>;

/// One call, checked, with its tensors as kernels read them: contiguous, float32 or float64,
/// expanded to full shape.
class DeviceCall {
 public:
  DeviceCall(const LayerInput& input, const LayerSettings& settings)
      : input_(input),
        settings_(settings),
        tensors_(prepare(solver_input(input, settings))),
        key_(input.key.contiguous()) {
    if (settings.estimator.noise.kind == NoiseKind::kSumOfGamma) {
      table_ = input.table->contiguous();
      // Kernels read four floats at once.
      if (reinterpret_cast<uintptr_t>(table_.const_data_ptr()) % 16 != 0) table_ = table_.clone();
      settings_.estimator.noise.table = table_.const_data_ptr<float>();
    }
    const auto sizes = input.theta.sizes();
    const auto split = sizes.size() - static_cast<size_t>(settings.instance_dims());
    for (const int64_t size : sizes.slice(split)) n_ *= size;
    for (const int64_t size : sizes.slice(0, split)) count_ *= size;
  }

  const LayerInput& input() const { return input_; }
  const LayerSettings& settings() const { return settings_; }
  const PassSettings& estimator() const { return settings_.estimator; }

  int64_t count() const { return count_; }
  int64_t n() const { return n_; }
  template <class T>
  const T* theta() const {
    return tensors_.scores.const_data_ptr<T>();
  }
  const bool* mask() const { return tensors_.mask_data(); }
  const int64_t* k() const { return tensors_.k_data(); }
  InstanceData data() const { return tensors_.instance_data(); }
  const at::Tensor& key() const { return key_; }

  /// The properties of a callable solver.
  CallableSolver callable() const { return settings_.callable; }

  at::ScalarType type() const { return tensors_.scores.scalar_type(); }
  at::Tensor empty(at::IntArrayRef sizes) const { return empty(sizes, type()); }
  at::Tensor empty(at::IntArrayRef sizes, at::ScalarType type) const {
    return empty_on(input_.theta.device(), sizes, type);
  }
  /// A gradient of z as kernels read it.
  at::Tensor gradient(const at::Tensor& dy) const { return dy.to(type()).contiguous(); }

 private:
  LayerInput input_;
  LayerSettings settings_;
  SolverTensors tensors_;
  at::Tensor key_;
  at::Tensor table_;
  int64_t n_ = 1;
  int64_t count_ = 1;
};

/// Throws ValueError for a row that the call's `check` does not allow.
void raise_for_failure(const Failure& failure, const DeviceCall& call);

/// Calls body with a value of the type in which the layer computes.
template <class Body>
decltype(auto) with_type(at::ScalarType type, Body body) {
  return with_value_errors(
      [&]() -> decltype(auto) { return type == at::kDouble ? body(double{}) : body(float{}); });
}

/// Sizes that are no longer symbolic.
at::DimVector known(const at::SymDimVector& sizes);

template <class Device>
Two forward_op(ArgumentReader& reader) {
  const LayerInput input = reader.input();
  const LayerSettings& settings = reader.settings();
  check_layer(input, settings);
  const Solver solver = make_solver(input, settings);
  const DeviceCall call(input, settings);
  const at::Tensor z = call.empty(known(result_sizes(input, settings)), Device::result_type(call));
  const bool kept = keeps_solution(settings.estimator);
  const at::Tensor bits = call.empty(known(bits_sizes(input, settings)), at::kByte);
  with_type(call.type(), [&]<class T>(T) {
    Device::template forward<T>(call, solver, z, kept ? bits.mutable_data_ptr<uint8_t>() : nullptr);
  });
  return {z.to(input.theta.scalar_type()), bits};
}

template <class Device>
at::Tensor backward_op(ArgumentReader& reader) {
  const at::Tensor dy = reader.tensor();
  const at::Tensor bits = reader.tensor();
  const LayerInput input = reader.input();
  const LayerState state = reader.state();
  const LayerSettings& settings = reader.settings();
  check_layer(input, settings);
  check_gradient(dy, input, settings);
  check_state(state, input, settings);
  check_handed("bits", bits, at::kByte, bits_sizes(input, settings), input);
  const Solver solver = make_solver(input, settings);
  const DeviceCall call(input, settings);
  const at::Tensor dtheta = call.empty(input.theta.sizes());
  with_type(call.type(), [&]<class T>(T) {
    Device::template backward<T>(
        call, solver, dy,
        keeps_solution(settings.estimator) ? bits.const_data_ptr<uint8_t>() : nullptr, state,
        dtheta.mutable_data_ptr<T>());
  });
  return dtheta.to(input.theta.scalar_type());
}

// ---- Stages -------------------------------------------------------------------------------------

template <class Device>
at::Tensor perturb_op(ArgumentReader& reader) {
  const LayerInput input = reader.input();
  const LayerSettings& settings = reader.settings();
  check_layer(input, settings);
  const DeviceCall call(input, settings);
  const at::Tensor x = call.empty(known(score_sizes(input, settings)));
  with_type(call.type(),
            [&]<class T>(T) { Device::template perturb<T>(call, x.mutable_data_ptr<T>()); });
  return x;
}

/// `step` after all checks.
template <class Device>
StepResult checked_step(const LayerInput& input, const LayerSettings& settings,
                        const at::Tensor& dy, const LayerState& state) {
  const DeviceCall call(input, settings);
  const at::Tensor gradient = call.gradient(dy);
  const auto sizes = known(score_sizes(input, settings));
  const at::Tensor left = call.empty(sizes), right = call.empty(sizes);
  const int64_t rows = gradient_rows(settings);
  const at::Tensor lambda = call.empty({call.count(), rows + 2}, at::kDouble);
  const at::Tensor counted = call.empty({call.count(), rows}, at::kByte);
  with_type(call.type(), [&]<class T>(T) {
    Device::template step<T>(call, gradient.const_data_ptr<T>(), state, left.mutable_data_ptr<T>(),
                             right.mutable_data_ptr<T>(), lambda.mutable_data_ptr<double>(),
                             counted.mutable_data_ptr<uint8_t>());
  });
  return {left, right, lambda, counted};
}

template <class Device>
StepResult step_op(ArgumentReader& reader) {
  const at::Tensor dy = reader.tensor();
  const LayerInput input = reader.input();
  const LayerState state{.alpha = reader.tensor_or_undefined(),
                         .updates = reader.tensor_or_undefined()};
  const at::Tensor sizes = reader.tensor_or_undefined();
  const LayerSettings& settings = reader.settings();
  check_layer(input, settings);
  check_gradient(dy, input, settings);
  if (std::holds_alternative<AdaptiveTarget>(settings.estimator.target)) {
    TORCH_CHECK_VALUE(state.alpha.defined() && state.updates.defined(),
                      "[aimle::step] an adaptive target needs alpha and updates");
    check_handed("alpha", state.alpha, at::kDouble, {}, input);
    check_handed("updates", state.updates, at::kLong, {}, input);
  }
  if (!sizes.defined()) return checked_step<Device>(input, settings, dy, state);
  check_handed("sizes", sizes, at::kDouble, {2}, input);
  return step_for_sizes(sizes, [&](bool fixed_size) {
    LayerSettings chosen = settings;
    chosen.callable.size.fixed = fixed_size;
    return checked_step<Device>(input, chosen, dy, state);
  });
}

template <class Device>
at::Tensor difference_op(ArgumentReader& reader) {
  const at::Tensor z_left = reader.tensor();
  const at::Tensor z_right = reader.tensor();
  const at::Tensor lambda = reader.tensor();
  const at::Tensor counted = reader.tensor();
  const LayerInput input = reader.input();
  const LayerState state = reader.state();
  const LayerSettings& settings = reader.settings();
  check_layer(input, settings);
  check_state(state, input, settings);
  const auto scores = score_sizes(input, settings);
  const c10::SymInt count = example_count(input, settings), rows = gradient_rows(settings);
  check_handed("z_left", z_left, native_type(input.theta), scores, input);
  check_handed("z_right", z_right, native_type(input.theta), scores, input);
  check_handed("lambda_", lambda, at::kDouble, {count, rows + 2}, input);
  check_handed("counted", counted, at::kByte, {count, rows}, input);
  const DeviceCall call(input, settings);
  const at::Tensor left = z_left.contiguous(), right = z_right.contiguous();
  const at::Tensor step_sizes = lambda.contiguous(), counts = counted.contiguous();
  const at::Tensor dtheta = call.empty(input.theta.sizes());
  with_type(call.type(), [&]<class T>(T) {
    Device::template difference<T>(call, left.const_data_ptr<T>(), right.const_data_ptr<T>(),
                                   step_sizes.const_data_ptr<double>(),
                                   counts.const_data_ptr<uint8_t>(), state,
                                   dtheta.mutable_data_ptr<T>());
  });
  return dtheta.to(input.theta.scalar_type());
}

template <class Device>
at::Tensor straight_through_op(ArgumentReader& reader) {
  const at::Tensor dy = reader.tensor();
  const LayerInput input = reader.input();
  const LayerSettings& settings = reader.settings();
  check_layer(input, settings);
  check_gradient(dy, input, settings);
  const DeviceCall call(input, settings);
  const at::Tensor dtheta = call.empty(input.theta.sizes());
  with_type(call.type(), [&]<class T>(T) {
    Device::template straight_through<T>(call, dy, dtheta.mutable_data_ptr<T>());
  });
  return dtheta.to(input.theta.scalar_type());
}

template <class Device>
std::tuple<> apply_counts_op(ArgumentReader& reader) {
  const at::Tensor counts = reader.tensor().contiguous();
  const LayerState state = reader.state();
  const LayerSettings& settings = reader.settings();
  check_counts(counts, state, settings);
  with_value_errors([&] { Device::apply_counts(settings, counts, state); });
  return {};
}

template <class Device>
void register_layer(torch::Library& library) {
  impl_boxed<&forward_op<Device>>(library, "perturbed_map_forward");
  impl_boxed<&backward_op<Device>>(library, "perturbed_map_backward");
  impl_boxed<&perturb_op<Device>>(library, "perturb");
  impl_boxed<&step_op<Device>>(library, "step");
  impl_boxed<&difference_op<Device>>(library, "difference");
  impl_boxed<&straight_through_op<Device>>(library, "straight_through");
  impl_boxed<&apply_counts_op<Device>>(library, "apply_counts");
}

}  // namespace aimle::ops
