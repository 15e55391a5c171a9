#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>
#include <type_traits>

#include "aimle/torch/dtype.h"
#include "aimle/torch/executor.h"
#include "aimle/torch/gradient_layout.h"
#include "aimle/torch/layer_ops.h"
#include "aimle/torch/solvers.h"
#include "aimle/torch/value_error.h"

namespace aimle::ops {
namespace {

using Two = std::tuple<at::Tensor, at::Tensor>;
using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

/// The inputs as the core reads them: contiguous, float32 or float64, at full shape.
class PreparedInput {
 public:
  PreparedInput(const LayerInput& input, LayerSettings& settings)
      : tensors_(prepare(solver_input(input, settings))), key_(input.key.contiguous()) {
    if (settings.estimator.noise.kind == NoiseKind::kSumOfGamma) {
      table_ = input.table->contiguous();
      settings.estimator.noise.table = table_.const_data_ptr<float>();
    }
    n_ = 1;
    for (const int64_t size :
         input.theta.sizes().slice(input.theta.dim() - settings.instance_dims())) {
      n_ *= size;
    }
    count_ = 1;
    for (const int64_t size :
         input.theta.sizes().slice(0, input.theta.dim() - settings.instance_dims())) {
      count_ *= size;
    }
  }

  at::ScalarType type() const { return tensors_.scores.scalar_type(); }
  at::TensorOptions options() const { return tensors_.scores.options(); }
  int64_t count() const { return count_; }

  template <class T>
  Examples<T> examples() const {
    const auto* words = key_.const_data_ptr<int64_t>();
    return {.count = count_,
            .n = n_,
            .theta = tensors_.scores.template const_data_ptr<T>(),
            .mask = tensors_.mask.defined() ? tensors_.mask.const_data_ptr<bool>() : nullptr,
            .k = tensors_.row_k.defined() ? tensors_.row_k.const_data_ptr<int64_t>() : nullptr,
            .key = {.seed = static_cast<uint64_t>(words[0]),
                    .stream = static_cast<uint64_t>(words[1])}};
  }

 private:
  SolverTensors tensors_;
  at::Tensor key_;
  at::Tensor table_;
  int64_t n_;
  int64_t count_;
};

/// Calls body with a value of the type the layer computes in.
template <class Body>
decltype(auto) with_type(at::ScalarType type, Body body) {
  return type == at::kDouble ? body(double{}) : body(float{});
}

void raise_for_failure(const Failure& failure, const LayerInput& input,
                       const LayerSettings& settings) {
  if (failure.row < 0 || settings.check == Check::kNever) return;
  if (settings.check == Check::kDefault && failure.status == Status::kNaN) return;
  const int64_t example = failure.row / settings.samples();
  TORCH_CHECK_VALUE(failure.status != Status::kNegativeCost, "[aimle::perturbed_map] row ", example,
                    ", sample ", failure.row % settings.samples(),
                    ": expected costs >= 0 under negative=\"error\", noise and step included, but "
                    "got a negative one");
  SolverInput described = solver_input(input, settings);
  if (settings.estimator.sense == Sense::kMin) described.scores = -described.scores;
  TORCH_CHECK_VALUE(false, describe_row(described, example, failure.status));
}

std::vector<int64_t> known(const std::vector<c10::SymInt>& sizes) {
  std::vector<int64_t> result;
  for (const c10::SymInt& size : sizes) result.push_back(size.expect_int());
  return result;
}

template <class Narrow>
void narrow(const float* z, int64_t first, int64_t count, void* stored) {
  Narrow* out = static_cast<Narrow*>(stored) + first;
  for (int64_t j = 0; j < count; ++j) out[j] = static_cast<Narrow>(z[j]);
}

/// Where forward writes: z itself, or its entries narrowed one block after the other.
template <class T>
ForwardPass<T> forward_pass(const at::Tensor& z, const at::Tensor& bits, bool keep_bits) {
  ForwardPass<T> pass{.bits = keep_bits ? bits.mutable_data_ptr<uint8_t>() : nullptr};
  if (z.scalar_type() == c10::CppTypeToScalarType<T>::value) {
    pass.z = z.mutable_data_ptr<T>();
  } else if constexpr (std::is_same_v<T, float>) {
    pass.stored = z.mutable_data_ptr();
    pass.store = z.scalar_type() == at::kHalf ? narrow<at::Half> : narrow<at::BFloat16>;
  }
  return pass;
}

Two forward_cpu(ArgumentReader& reader) {
  const LayerInput input = reader.input();
  LayerSettings settings = reader.settings();
  check_layer(input, settings);
  const Solver solver = make_solver(input, settings);
  const PreparedInput prepared(input, settings);
  const at::ScalarType type = settings.mean() ? prepared.type() : input.theta.scalar_type();
  const at::Tensor z =
      at::empty(known(result_sizes(input, settings)), prepared.options().dtype(type));
  const at::Tensor bits =
      at::empty(known(bits_sizes(input, settings)), prepared.options().dtype(at::kByte));
  const Failure failure = with_type(prepared.type(), [&]<class T>(T) {
    return with_value_errors([&] {
      return forward(settings.estimator, solver, prepared.examples<T>(),
                     forward_pass<T>(z, bits, keeps_solution(settings.estimator)), torch_threads());
    });
  });
  raise_for_failure(failure, input, settings);
  return {z.to(input.theta.scalar_type()), bits};
}

/// Lets the controller learn from a pass, and writes the stats.
void record(const LayerSettings& settings, const BackwardReport& report, const LayerState& state) {
  const Changes& seen = report.changes;
  if (seen.samples == 0) return;
  if (state.stats.defined()) {
    auto* stats = state.stats.mutable_data_ptr<double>();
    const auto share = [](int64_t part, int64_t whole) {
      return static_cast<double>(part) / static_cast<double>(std::max<int64_t>(whole, 1));
    };
    stats[kLambdaMean] = report.lambda_mean;
    stats[kLambdaMin] = report.lambda_min;
    stats[kLambdaMax] = report.lambda_max;
    stats[kCount] = share(seen.nonzeros, seen.samples);
    stats[kZeroShare] = share(seen.zeros, seen.entries);
    stats[kChangedShare] = share(seen.changed, seen.samples);
    if (state.stats.numel() >= kLayerStats) {
      stats[kCappedShare] = report.capped_share;
      stats[kCappedMass] = report.capped_mass;
    }
  }
  const auto* target = std::get_if<AdaptiveTarget>(&settings.estimator.target);
  if (target == nullptr || !settings.adapt) return;
  ControllerState controller{
      .alpha = *state.alpha.const_data_ptr<double>(),
      .gbar = *state.gbar.const_data_ptr<double>(),
      .updates = *state.updates.const_data_ptr<int64_t>(),
      .velocity = state.velocity.defined() ? *state.velocity.const_data_ptr<double>() : 0.0};
  update(*target, seen, controller);
  *state.alpha.mutable_data_ptr<double>() = controller.alpha;
  *state.gbar.mutable_data_ptr<double>() = controller.gbar;
  *state.updates.mutable_data_ptr<int64_t>() = controller.updates;
  if (state.velocity.defined()) *state.velocity.mutable_data_ptr<double>() = controller.velocity;
}

double alpha_of(const LayerSettings& settings, const at::Tensor& alpha) {
  if (!std::holds_alternative<AdaptiveTarget>(settings.estimator.target)) return 0.0;
  return *alpha.const_data_ptr<double>();
}

at::Tensor backward_cpu(ArgumentReader& reader) {
  const at::Tensor dy = reader.tensor();
  const at::Tensor bits = reader.tensor();
  const LayerInput input = reader.input();
  const LayerState state = reader.state();
  LayerSettings settings = reader.settings();
  check_layer(input, settings);
  check_gradient(dy, input, settings);
  check_state(state, input, settings);
  check_handed("bits", bits, at::kByte, bits_sizes(input, settings), input);
  const Solver solver = make_solver(input, settings);
  const PreparedInput prepared(input, settings);
  const GradientLayout gradient(dy, settings);
  const at::Tensor dtheta = at::empty(input.theta.sizes(), prepared.options());
  const BackwardReport report = with_type(prepared.type(), [&]<class T>(T) {
    return with_value_errors([&] {
      return backward(
          settings.estimator, solver, prepared.examples<T>(),
          BackwardPass<T>{
              .bits = keeps_solution(settings.estimator) ? bits.const_data_ptr<uint8_t>() : nullptr,
              .alpha = alpha_of(settings, state.alpha),
              .dtheta = dtheta.mutable_data_ptr<T>(),
              .dy_rows = gradient.rows<T>()},
          torch_threads());
    });
  });
  raise_for_failure(report.failure, input, settings);
  record(settings, report, state);
  return dtheta.to(input.theta.scalar_type());
}

// ---- Stages
// ---------------------------------------------------------------------------------------

Sense callable_sense(const LayerSettings& settings) {
  return settings.solver_args[0] != 0 ? Sense::kMin : Sense::kMax;
}

at::Tensor perturb_cpu(ArgumentReader& reader) {
  const LayerInput input = reader.input();
  LayerSettings settings = reader.settings();
  check_layer(input, settings);
  const PreparedInput prepared(input, settings);
  const at::Tensor x = at::empty(known(score_sizes(input, settings)), prepared.options());
  with_type(prepared.type(), [&]<class T>(T) {
    perturb(settings.estimator, callable_sense(settings), prepared.examples<T>(),
            x.mutable_data_ptr<T>(), torch_threads());
  });
  return x;
}

Four step_cpu(ArgumentReader& reader) {
  const at::Tensor dy = reader.tensor();
  const LayerInput input = reader.input();
  const at::Tensor alpha = reader.tensor_or_undefined();
  LayerSettings settings = reader.settings();
  check_layer(input, settings);
  check_gradient(dy, input, settings);
  if (std::holds_alternative<AdaptiveTarget>(settings.estimator.target)) {
    TORCH_CHECK_VALUE(alpha.defined(), "[aimle::step] an adaptive target needs alpha");
    check_handed("alpha", alpha, at::kDouble, {}, input);
  }
  const PreparedInput prepared(input, settings);
  const at::Tensor gradient = dy.to(prepared.type()).contiguous();
  const auto sizes = known(score_sizes(input, settings));
  const at::Tensor left = at::empty(sizes, prepared.options());
  const at::Tensor right = at::empty(sizes, prepared.options());
  const int64_t rows = gradient_rows(settings);
  const at::Tensor lambda =
      at::empty({prepared.count(), rows + 2}, prepared.options().dtype(at::kDouble));
  const at::Tensor counted =
      at::empty({prepared.count(), rows}, prepared.options().dtype(at::kByte));
  with_type(prepared.type(), [&]<class T>(T) {
    step(settings.estimator, callable_sense(settings), prepared.examples<T>(),
         gradient.const_data_ptr<T>(), alpha_of(settings, alpha), left.mutable_data_ptr<T>(),
         right.mutable_data_ptr<T>(), lambda.mutable_data_ptr<double>(),
         counted.mutable_data_ptr<uint8_t>(), torch_threads());
  });
  return {left, right, lambda, counted};
}

at::Tensor difference_cpu(ArgumentReader& reader) {
  const at::Tensor z_left = reader.tensor();
  const at::Tensor z_right = reader.tensor();
  const at::Tensor lambda = reader.tensor();
  const at::Tensor counted = reader.tensor();
  const LayerInput input = reader.input();
  const LayerState state = reader.state();
  LayerSettings settings = reader.settings();
  check_layer(input, settings);
  check_state(state, input, settings);
  const auto scores = score_sizes(input, settings);
  const c10::SymInt count = example_count(input, settings), rows = gradient_rows(settings);
  check_handed("z_left", z_left, native_type(input.theta), scores, input);
  check_handed("z_right", z_right, native_type(input.theta), scores, input);
  check_handed("lambda_", lambda, at::kDouble, {count, rows + 2}, input);
  check_handed("counted", counted, at::kByte, {count, rows}, input);
  const PreparedInput prepared(input, settings);
  const at::Tensor left = z_left.contiguous();
  const at::Tensor right = z_right.contiguous();
  const at::Tensor step_sizes = lambda.contiguous();
  const at::Tensor counts = counted.contiguous();
  const at::Tensor dtheta = at::empty(input.theta.sizes(), prepared.options());
  const BackwardReport report = with_type(prepared.type(), [&]<class T>(T) {
    return difference(settings.estimator, prepared.examples<T>(), left.const_data_ptr<T>(),
                      right.const_data_ptr<T>(), step_sizes.const_data_ptr<double>(),
                      counts.const_data_ptr<uint8_t>(), dtheta.mutable_data_ptr<T>(),
                      torch_threads());
  });
  record(settings, report, state);
  return dtheta.to(input.theta.scalar_type());
}

at::Tensor straight_through_cpu(ArgumentReader& reader) {
  const at::Tensor dy = reader.tensor();
  const LayerInput input = reader.input();
  LayerSettings settings = reader.settings();
  check_layer(input, settings);
  check_gradient(dy, input, settings);
  const PreparedInput prepared(input, settings);
  const GradientLayout gradient(dy, settings);
  const at::Tensor dtheta = at::empty(input.theta.sizes(), prepared.options());
  with_type(prepared.type(), [&]<class T>(T) {
    straight_through(settings.estimator, prepared.examples<T>(), gradient.rows<T>(),
                     dtheta.mutable_data_ptr<T>(), torch_threads());
  });
  return dtheta.to(input.theta.scalar_type());
}

TORCH_LIBRARY_IMPL(aimle, CPU, library) {
  using torch::CppFunction;
  library.impl("perturbed_map_forward", CppFunction::makeFromBoxedFunction<&boxed<&forward_cpu>>());
  library.impl("perturbed_map_backward",
               CppFunction::makeFromBoxedFunction<&boxed<&backward_cpu>>());
  library.impl("perturb", CppFunction::makeFromBoxedFunction<&boxed<&perturb_cpu>>());
  library.impl("step", CppFunction::makeFromBoxedFunction<&boxed<&step_cpu>>());
  library.impl("difference", CppFunction::makeFromBoxedFunction<&boxed<&difference_cpu>>());
  library.impl("straight_through",
               CppFunction::makeFromBoxedFunction<&boxed<&straight_through_cpu>>());
}

}  // namespace
}  // namespace aimle::ops
