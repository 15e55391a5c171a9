#include <type_traits>

#include "aimle/estimate/stats.h"
#include "aimle/torch/executor.h"
#include "aimle/torch/gradient_layout.h"
#include "aimle/torch/layer_device.h"
#include "aimle/torch/noise.h"

namespace aimle::ops {
namespace {

template <class T>
Examples<T> examples_of(const LayerCall& call) {
  return {.count = call.count(),
          .n = call.n(),
          .theta = call.theta<T>(),
          .mask = call.mask(),
          .k = call.k(),
          .key = host_key(call.key())};
}

/// Lets the controller learn from a pass, and writes the stats.
void record(const LayerSettings& settings, const BackwardReport& report, const LayerState& state) {
  if (state.stats.defined()) write_stats(report, state.stats.mutable_data_ptr<double>());
  const auto* target = std::get_if<AdaptiveTarget>(&settings.estimator.target);
  if (target == nullptr || !settings.adapt || report.changes.samples == 0) return;
  ControllerState controller{
      .alpha = *state.alpha.const_data_ptr<double>(),
      .gbar = *state.gbar.const_data_ptr<double>(),
      .updates = *state.updates.const_data_ptr<int64_t>(),
      .velocity = state.velocity.defined() ? *state.velocity.const_data_ptr<double>() : 0.0};
  update(*target, report.changes, controller);
  *state.alpha.mutable_data_ptr<double>() = controller.alpha;
  *state.gbar.mutable_data_ptr<double>() = controller.gbar;
  *state.updates.mutable_data_ptr<int64_t>() = controller.updates;
  if (state.velocity.defined()) *state.velocity.mutable_data_ptr<double>() = controller.velocity;
}

double alpha_of(const LayerCall& call, const at::Tensor& alpha) {
  if (!std::holds_alternative<AdaptiveTarget>(call.estimator().target)) return 0.0;
  return *alpha.const_data_ptr<double>();
}

template <class Narrow>
void narrow(const float* z, int64_t first, int64_t count, void* stored) {
  Narrow* out = static_cast<Narrow*>(stored) + first;
  for (int64_t j = 0; j < count; ++j) out[j] = static_cast<Narrow>(z[j]);
}

/// Where forward writes: z itself, or its entries narrowed one block after the other.
template <class T>
ForwardPass<T> forward_pass(const at::Tensor& z, uint8_t* bits) {
  ForwardPass<T> pass{.bits = bits};
  if (z.scalar_type() == c10::CppTypeToScalarType<T>::value) {
    pass.z = z.mutable_data_ptr<T>();
  } else if constexpr (std::is_same_v<T, float>) {
    pass.stored = z.mutable_data_ptr();
    pass.store = z.scalar_type() == at::kHalf ? narrow<at::Half> : narrow<at::BFloat16>;
  }
  return pass;
}

struct Cpu {
  static at::ScalarType result_type(const LayerCall& call) {
    return call.settings().mean() ? call.type() : call.input().theta.scalar_type();
  }

  template <class T>
  static void forward(const LayerCall& call, const Solver& solver, const at::Tensor& z,
                      uint8_t* bits) {
    raise_for_failure(aimle::forward(call.estimator(), solver, examples_of<T>(call),
                                     forward_pass<T>(z, bits), torch_threads()),
                      call);
  }

  template <class T>
  static void backward(const LayerCall& call, const Solver& solver, const at::Tensor& dy,
                       const uint8_t* bits, const LayerState& state, T* dtheta) {
    const GradientLayout gradient(dy, call.settings());
    const BackwardReport report =
        aimle::backward(call.estimator(), solver, examples_of<T>(call),
                        BackwardPass<T>{.bits = bits,
                                        .alpha = alpha_of(call, state.alpha),
                                        .dtheta = dtheta,
                                        .dy_rows = gradient.rows<T>()},
                        torch_threads());
    raise_for_failure(report.failure, call);
    record(call.settings(), report, state);
  }

  template <class T>
  static void perturb(const LayerCall& call, T* x) {
    aimle::perturb(call.estimator(), call.callable_sense(), examples_of<T>(call), x,
                   torch_threads());
  }

  template <class T>
  static void step(const LayerCall& call, const T* dy, const at::Tensor& alpha, T* x_left,
                   T* x_right, double* lambda, uint8_t* counted) {
    aimle::step(call.estimator(), call.callable_sense(), examples_of<T>(call), dy,
                alpha_of(call, alpha), x_left, x_right, lambda, counted, torch_threads());
  }

  template <class T>
  static void difference(const LayerCall& call, const T* z_left, const T* z_right,
                         const double* lambda, const uint8_t* counted, const LayerState& state,
                         T* dtheta) {
    record(call.settings(),
           aimle::difference(call.estimator(), examples_of<T>(call), z_left, z_right, lambda,
                             counted, dtheta, torch_threads()),
           state);
  }

  template <class T>
  static void straight_through(const LayerCall& call, const at::Tensor& dy, T* dtheta) {
    aimle::straight_through(call.estimator(), examples_of<T>(call),
                            GradientLayout(dy, call.settings()).template rows<T>(), dtheta,
                            torch_threads());
  }
};

TORCH_LIBRARY_IMPL(aimle, CPU, library) { register_layer<Cpu>(library); }

}  // namespace
}  // namespace aimle::ops
