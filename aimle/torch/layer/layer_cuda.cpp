#include "aimle/cuda/passes.h"
#include "aimle/torch/layer/layer_device.h"
#include "aimle/torch/tensor/device_context.h"

namespace aimle::ops {
namespace {

template <class T>
cuda::DeviceExamples<T> device_examples_of(const DeviceCall& call) {
  return {.count = call.count(),
          .n = call.n(),
          .theta = call.theta<T>(),
          .mask = call.mask(),
          .k = call.k(),
          .data = call.data(),
          .key = device_key(call.key())};
}

template <class Value>
Value* pointer(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<Value>() : nullptr;
}

cuda::DeviceState state_of(const LayerState& state, bool adapt) {
  return {.alpha = pointer<double>(state.alpha),
          .gbar = pointer<double>(state.gbar),
          .updates = pointer<int64_t>(state.updates),
          .memory = pointer<double>(state.memory),
          .stats = pointer<double>(state.stats),
          .waiting = state.waiting(),
          .adapt = adapt};
}

/// Memory for a status per row if the caller waits for it; undefined otherwise.
at::Tensor status_of(const DeviceCall& call, int64_t sides) {
  if (call.settings().check != Check::kAll) return {};
  return call.empty({sides, call.count() * call.estimator().samples}, at::kByte).zero_();
}

/// Waits, and throws for the first row whose status is bad; `only` restricts this to one status.
void raise_for_rows(const at::Tensor& status, const DeviceCall& call, Status only = Status::kOk) {
  if (!status.defined()) return;
  const at::Tensor host = status.cpu();
  const auto* codes = host.const_data_ptr<uint8_t>();
  const int64_t rows = host.size(1);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t side = 0; side < host.size(0); ++side) {
      const auto found = static_cast<Status>(codes[side * rows + row]);
      if (found == Status::kOk || (only != Status::kOk && found != only)) continue;
      raise_for_failure({.row = row, .status = found}, call);
    }
  }
}

struct Cuda {
  static at::ScalarType result_type(const DeviceCall& call) { return call.type(); }

  template <class T>
  static void forward(const DeviceCall& call, const Solver& solver, const at::Tensor& z,
                      uint8_t* bits) {
    const DeviceContext context(call.input().theta);
    const at::Tensor status = status_of(call, 1);
    cuda::forward(call.estimator(), solver, device_examples_of<T>(call),
                  cuda::DeviceForward<T>{
                      .z = pointer<T>(z), .bits = bits, .status = pointer<uint8_t>(status)},
                  context.get());
    raise_for_rows(status, call);
  }

  template <class T>
  static void backward(const DeviceCall& call, const Solver& solver, const at::Tensor& dy,
                       const uint8_t* bits, const LayerState& state, T* dtheta) {
    const DeviceContext context(call.input().theta);
    const at::Tensor gradient = call.gradient(dy);
    const at::Tensor status = status_of(call, 2);
    cuda::backward(call.estimator(), solver, device_examples_of<T>(call),
                   cuda::DeviceBackward<T>{.dy = gradient.const_data_ptr<T>(),
                                           .bits = bits,
                                           .dtheta = dtheta,
                                           .status = pointer<uint8_t>(status)},
                   state_of(state, call.settings().adapt), context.get());
    raise_for_rows(status, call, Status::kNegativeCost);
  }

  template <class T>
  static void perturb(const DeviceCall& call, T* x) {
    const DeviceContext context(call.input().theta);
    cuda::perturb(call.estimator(), call.callable().sense, device_examples_of<T>(call), x,
                  context.get());
  }

  template <class T>
  static void step(const DeviceCall& call, const T* dy, const LayerState& state, T* x_left,
                   T* x_right, double* lambda, uint8_t* counted) {
    const DeviceContext context(call.input().theta);
    cuda::step(call.estimator(), call.callable(), device_examples_of<T>(call), dy,
               state_of(state, call.settings().adapt), x_left, x_right, lambda, counted,
               context.get());
  }

  template <class T>
  static void difference(const DeviceCall& call, const T* z_left, const T* z_right,
                         const double* lambda, const uint8_t* counted, const LayerState& state,
                         T* dtheta) {
    const DeviceContext context(call.input().theta);
    cuda::difference(call.estimator(), device_examples_of<T>(call), z_left, z_right, lambda,
                     counted, dtheta, state_of(state, call.settings().adapt), context.get());
  }

  static void apply_counts(const LayerSettings& settings, const at::Tensor& counts,
                           const LayerState& state) {
    const DeviceContext context(counts);
    cuda::apply_counts(settings.estimator, counts.const_data_ptr<double>(), state_of(state, true),
                       context.get());
  }

  template <class T>
  static void straight_through(const DeviceCall& call, const at::Tensor& dy, T* dtheta) {
    const DeviceContext context(call.input().theta);
    const at::Tensor gradient = call.gradient(dy);
    cuda::straight_through(call.estimator(), device_examples_of<T>(call),
                           gradient.const_data_ptr<T>(), dtheta, context.get());
  }
};

TORCH_LIBRARY_IMPL(aimle, CUDA, library) { register_layer<Cuda>(library); }

}  // namespace
}  // namespace aimle::ops
