#include <algorithm>
#include <mutex>
#include <type_traits>

#include "aimle/estimate/stats.h"
#include "aimle/torch/layer/gradient_layout.h"
#include "aimle/torch/layer/layer_device.h"
#include "aimle/torch/noise/noise_ops.h"
#include "aimle/torch/tensor/executor.h"

namespace aimle::ops {
namespace {

template <class T>
Examples<T> examples_of(const DeviceCall& call) {
  return {.count = call.count(),
          .n = call.n(),
          .theta = call.theta<T>(),
          .mask = call.mask(),
          .k = call.k(),
          .data = call.data(),
          .key = host_key(call.key())};
}

ControllerState read_controller(const LayerState& state) {
  return {.alpha = *state.alpha.const_data_ptr<double>(),
          .gbar = *state.gbar.const_data_ptr<double>(),
          .updates = *state.updates.const_data_ptr<int64_t>(),
          .memory = state.memory.defined() ? *state.memory.const_data_ptr<double>() : 0.0};
}

void write_controller(const ControllerState& controller, const LayerState& state) {
  *state.alpha.mutable_data_ptr<double>() = controller.alpha;
  *state.gbar.mutable_data_ptr<double>() = controller.gbar;
  *state.updates.mutable_data_ptr<int64_t>() = controller.updates;
  if (state.memory.defined()) *state.memory.mutable_data_ptr<double>() = controller.memory;
}

/// Guards the state of every layer: several threads may run backward through one layer. It is held
/// for some nanoseconds, and never while a warning is issued, which may wait for Python.
std::mutex& state_mutex() {
  static std::mutex mutex;
  return mutex;
}

enum class Stuck { kNo, kIdle, kAtBound };

/// Warns once if the step size of a layer cannot work.
Stuck newly_stuck(double* stats) {
  if (stats[kWarned] > 0.0) return Stuck::kNo;
  const Stuck stuck = stats[kIdleUpdates] >= kIdleLimit       ? Stuck::kIdle
                      : stats[kUpdatesAtBound] >= kBoundLimit ? Stuck::kAtBound
                                                              : Stuck::kNo;
  if (stuck != Stuck::kNo) stats[kWarned] = 1.0;
  return stuck;
}

void warn(Stuck stuck, const AdaptiveTarget& target, double alpha) {
  if (stuck == Stuck::kIdle) {
    TORCH_WARN("[aimle] the step size lambda of a layer was 0 in ", kIdleLimit,
               " consecutive backward passes, so theta gets no gradient: theta or alpha is zero. "
               "AdaptiveTarget() with its defaults also takes a step there.");
  } else if (stuck == Stuck::kAtBound) {
    TORCH_WARN("[aimle] alpha of a layer was at its ",
               alpha == target.alpha_min ? "lower" : "upper", " bound ", alpha, " for ",
               kBoundLimit,
               " updates: the step size does not adapt. Leave target_norm and alpha_range at their "
               "defaults, or widen alpha_range.");
  }
}

/// Whether to warn of clipped costs: once for each layer.
bool newly_clipped(double* stats) {
  if (stats[kWarnedOfClipping] > 0.0 || !(stats[kClippedPasses] >= kClippedLimit)) return false;
  stats[kWarnedOfClipping] = 1.0;
  return true;
}

void warn_of_clipping() {
  TORCH_WARN("[aimle] in ", kClippedLimit, " consecutive backward passes of a layer, more than ",
             100.0 * kMostClipped,
             " % of the costs, noise and step included, were below zero, where they count as zero: "
             "theta learns nothing there. Keep costs above zero, for example with "
             "torch.nn.functional.softplus; if they are, lower the temperature or the step size.");
}

/// Updates the controller after a pass, and writes the stats.
void update_state(const LayerSettings& settings, const BackwardReport& report,
                  const LayerState& state) {
  std::unique_lock lock(state_mutex());
  double* stats = state.stats.defined() ? state.stats.mutable_data_ptr<double>() : nullptr;
  if (stats != nullptr) {
    write_stats(report, stats);
    if (newly_clipped(stats)) {
      lock.unlock();
      warn_of_clipping();
      lock.lock();
    }
  }
  const auto* target = std::get_if<AdaptiveTarget>(&settings.estimator.target);
  if (target == nullptr || !settings.adapt || report.changes.samples == 0) return;
  if (double* waiting = state.waiting()) return add_waiting(report, waiting);
  ControllerState controller = read_controller(state);
  update_alpha(*target, settings.estimator.samples, report.changes, controller);
  write_controller(controller, state);
  if (stats == nullptr) return;
  update_watch(*target, report.lambda_max, controller.alpha, stats);
  const Stuck stuck = newly_stuck(stats);
  lock.unlock();
  warn(stuck, *target, controller.alpha);
}

/// Updates the controller from the counts of all processes, and clears this process's own.
void apply_counts(const LayerSettings& settings, const double* counts, const LayerState& state) {
  std::unique_lock lock(state_mutex());
  const auto& target = std::get<AdaptiveTarget>(settings.estimator.target);
  double* stats = state.stats.mutable_data_ptr<double>();
  ControllerState controller = read_controller(state);
  std::fill_n(state.waiting(), kWaitingCounts, 0.0);
  if (!update_from_counts(target, settings.estimator.samples, counts, controller, stats)) return;
  write_controller(controller, state);
  const Stuck stuck = newly_stuck(stats);
  lock.unlock();
  warn(stuck, target, controller.alpha);
}

double alpha_of(const DeviceCall& call, const LayerState& state) {
  const auto* target = std::get_if<AdaptiveTarget>(&call.estimator().target);
  if (target == nullptr) return 0.0;
  const std::lock_guard lock(state_mutex());
  return step_alpha(*target, *state.alpha.const_data_ptr<double>(),
                    *state.updates.const_data_ptr<int64_t>(), call.settings().adapt);
}

template <class Narrow>
void narrow(const float* z, int64_t first, int64_t count, void* stored) {
  Narrow* out = static_cast<Narrow*>(stored) + first;
  for (int64_t j = 0; j < count; ++j) out[j] = static_cast<Narrow>(z[j]);
}

/// Where forward writes: z itself, or its entries converted one block after the other.
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

/// Where the rivals are kept: after the packed solutions. Null if none are.
template <class Byte, class T>
Byte* rivals_behind(auto* bits, const DeviceCall& call, const Examples<T>& examples) {
  if (call.estimator().difference != Difference::kThresholds) return nullptr;
  const int64_t rows = examples.count * call.estimator().samples;
  return reinterpret_cast<Byte*>(bits + rows * bytes_per_row(examples.n));
}

struct Cpu {
  static at::ScalarType result_type(const DeviceCall& call) {
    return call.settings().mean() ? call.type() : call.input().theta.scalar_type();
  }

  template <class T>
  static void forward(const DeviceCall& call, const Solver& solver, const at::Tensor& z,
                      uint8_t* bits) {
    const Examples<T> examples = examples_of<T>(call);
    ForwardPass<T> pass = forward_pass<T>(z, bits);
    pass.rivals = rivals_behind<std::byte>(bits, call, examples);
    raise_for_failure(aimle::forward(call.estimator(), solver, examples, pass, torch_threads()),
                      call);
  }

  template <class T>
  static void backward(const DeviceCall& call, const Solver& solver, const at::Tensor& dy,
                       const uint8_t* bits, const LayerState& state, T* dtheta) {
    const GradientLayout gradient(dy, call.settings());
    const Examples<T> examples = examples_of<T>(call);
    const BackwardReport report = aimle::backward(
        call.estimator(), solver, examples,
        BackwardPass<T>{.bits = bits,
                        .rivals = rivals_behind<const std::byte>(bits, call, examples),
                        .alpha = alpha_of(call, state),
                        .dtheta = dtheta,
                        .dy_rows = gradient.rows<T>()},
        torch_threads());
    raise_for_failure(report.failure, call);
    update_state(call.settings(), report, state);
  }

  template <class T>
  static void perturb(const DeviceCall& call, T* x) {
    aimle::perturb(call.estimator(), call.callable().sense, examples_of<T>(call), x,
                   torch_threads());
  }

  template <class T>
  static void step(const DeviceCall& call, const T* dy, const LayerState& state, T* x_left,
                   T* x_right, double* lambda, uint8_t* counted) {
    aimle::step(call.estimator(), call.callable(), examples_of<T>(call), dy, alpha_of(call, state),
                x_left, x_right, lambda, counted, torch_threads());
  }

  template <class T>
  static void difference(const DeviceCall& call, const T* z_left, const T* z_right,
                         const double* lambda, const uint8_t* counted, const LayerState& state,
                         T* dtheta) {
    update_state(call.settings(),
                 aimle::difference(call.estimator(), examples_of<T>(call), z_left, z_right, lambda,
                                   counted, dtheta, torch_threads()),
                 state);
  }

  static void apply_counts(const LayerSettings& settings, const at::Tensor& counts,
                           const LayerState& state) {
    ops::apply_counts(settings, counts.const_data_ptr<double>(), state);
  }

  template <class T>
  static void straight_through(const DeviceCall& call, const at::Tensor& dy, T* dtheta) {
    aimle::straight_through(call.estimator(), examples_of<T>(call),
                            GradientLayout(dy, call.settings()).template rows<T>(), dtheta,
                            torch_threads());
  }
};

TORCH_LIBRARY_IMPL(aimle, CPU, library) { register_layer<Cpu>(library); }

}  // namespace
}  // namespace aimle::ops
