#include "aimle/torch/layer.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>
#include <utility>

#include "aimle/estimate/published.h"
#include "aimle/estimate/stats.h"
#include "aimle/map/declaration.h"
#include "aimle/torch/functions.h"
#include "aimle/torch/layer/layer_settings.h"
#include "aimle/torch/layer/setting_names.h"
#include "aimle/torch/layer/solution_sizes.h"
#include "aimle/torch/layer/staged_layer.h"
#include "aimle/torch/solve/solver_checks.h"
#include "aimle/torch/tensor/dtype.h"
#include "aimle/torch/tensor/find_op.h"
#include "aimle/torch/tensor/value_error.h"

namespace aimle {
namespace {

at::Tensor scalar(double value) { return at::full({}, value, at::kDouble); }

at::IValue value_in(const std::map<std::string, at::Tensor>& tensors, const char* name) {
  const auto found = tensors.find(name);
  return found == tensors.end() ? at::IValue() : at::IValue(found->second);
}

double noise_stddev(const NoiseSpec& noise) {
  return moments(noise.kind, noise.k, noise.iterations).stddev;
}

/// Whether the noise must suit solutions that vary in size.
bool varies(const LayerOptions& options) {
  return options.solver.varies_in_size() && !is_published(options.target);
}

/// What is subtracted from the noise.
double subtracted_mean(const LayerOptions& options) {
  const NoiseSpec& noise = *options.noise;
  if (!noise.centred.value_or(varies(options))) return 0.0;
  return moments(noise.kind, noise.k, noise.iterations).mean;
}

/// The options with the default noise of the structure filled in.
LayerOptions with_noise(LayerOptions options) {
  const SolverKind* kind = options.solver.kind();
  NoiseKind noise = NoiseKind::kGumbel;
  double temperature = 1.0;
  if (kind != nullptr && !is_published(options.target)) {
    noise = ops::parse_word("Layer", "noise", kind->noise, ops::kNoises);
    temperature = kind->temperature;
  } else if (varies(options)) {
    noise = NoiseKind::kNormal;
    temperature = kCostTemperature;
  }
  if (!options.noise) options.noise = NoiseSpec{.kind = noise};
  if (!options.theta_noise_temperature) options.theta_noise_temperature = temperature;
  return options;
}

PassSettings settings_of(const LayerOptions& options) {
  const double temperature = *options.theta_noise_temperature;
  return {.noise = {.kind = options.noise->kind},
          .noise_stddev = noise_stddev(*options.noise),
          .noise_mean = subtracted_mean(options),
          .samples = options.nb_samples,
          .theta_temperature = temperature,
          .target_temperature = options.target_noise_temperature.value_or(temperature),
          .sense = options.sense.value_or(options.solver.sense()),
          .output = ops::parse_word("Layer", "output", options.output, ops::kOutputs),
          .difference = options.difference,
          .target = options.target};
}

void validate(const LayerOptions& options) {
  const PassSettings settings = settings_of(options);
  ops::with_value_errors([&] { settings.validate(); });
  const SolverKind* kind = options.solver.kind();
  if (kind != nullptr) ops::check_sense("Layer", *kind, settings.sense);
}

/// Where alpha starts: as given, or where the target starts.
double start_of(const AdaptiveTarget& target, std::optional<double> given) {
  const double low = target.alpha_min;
  const double high =
      target.alpha_max > 0.0 ? target.alpha_max : std::numeric_limits<double>::infinity();
  const double start = given.value_or(target.start());
  TORCH_CHECK_VALUE(low <= start && start <= high, "[aimle::Layer] expected ", low,
                    " <= initial_alpha <= ", high, " but got ", start);
  return start;
}

}  // namespace

std::string SolverSpec::text() const {
  if (native_) return native_->text();
  return "callable:sense=" + ops::word_of(function_sense_, ops::kSenses) +
         ",dims=" + std::to_string(function_dims_) +
         (function_size_ == KnownSize::kFixed ? ",fixed_size=1" : ",fixed_size=0");
}

SolverSpec solver(std::string_view text) { return ops::parse_solver_text(text); }

SolverSpec argmax() { return solver("argmax"); }

SolverSpec topk(int64_t k) { return solver("topk:k=" + std::to_string(k)); }

SolverSpec spanning_tree(int64_t vertices) {
  return solver("spanning_tree:n=" + std::to_string(vertices));
}

SolverSpec grid_path(int64_t neighbourhood, Cell source, Cell target, bool refuse_negative) {
  return solver("grid_path:neighbourhood=" + std::to_string(neighbourhood) +
                ",source=" + detail::cell_text(source) + ",target=" + detail::cell_text(target) +
                (refuse_negative ? ",negative=error" : ",negative=clip"));
}

SolverSpec callable(SolverFunction function, Sense sense, int64_t instance_dims, KnownSize size) {
  TORCH_CHECK_VALUE(function, "[aimle::callable] expected a function but got an empty one");
  TORCH_CHECK_VALUE(instance_dims >= 1, "[aimle::callable] expected instance_dims >= 1 but got ",
                    instance_dims);
  return {std::move(function), sense, instance_dims, size};
}

LayerOptions aimle(SolverSpec solver) {
  const Difference difference = default_difference(solver);
  const AdaptiveTarget target = default_target(solver, difference);
  return {.solver = std::move(solver), .target = target, .difference = difference};
}

Difference default_difference(const SolverSpec& solver) {
  return solver.takes_costs() ? Difference::kForward : Difference::kCentral;
}

AdaptiveTarget default_target(const SolverSpec& solver, Difference difference) {
  AdaptiveTarget target;
  if (solver.takes_costs() && difference == Difference::kForward) {
    target.alpha_max = AdaptiveTarget::kLargestAlphaOfCosts;
  }
  return target;
}

LayerOptions imle(SolverSpec solver, double lambda) {
  return {.solver = std::move(solver),
          .target = FixedTarget{.lambda = lambda},
          .difference = Difference::kForward};
}

LayerOptions ste(SolverSpec solver) {
  return {.solver = std::move(solver),
          .target = FixedTarget{.lambda = 0.0},
          .difference = Difference::kStraightThrough};
}

LayerOptions dbb(SolverSpec solver, double lambda) {
  LayerOptions options = imle(std::move(solver), lambda);
  options.noise = NoiseSpec{.kind = NoiseKind::kNone};
  options.output = "mean";
  return options;
}

LayerOptions identity(SolverSpec solver) {
  LayerOptions options = ste(std::move(solver));
  options.noise = NoiseSpec{.kind = NoiseKind::kNone};
  options.output = "mean";
  return options;
}

at::Tensor project(const at::Tensor& theta, Projection projection, int64_t instance_dims,
                   const std::optional<at::Tensor>& mask) {
  TORCH_CHECK_VALUE(1 <= instance_dims && instance_dims <= theta.dim(),
                    "[aimle::project] expected 1 <= instance_dims <= ", theta.dim(), " but got ",
                    instance_dims);
  std::vector<int64_t> dims;
  for (int64_t d = -instance_dims; d < 0; ++d) dims.push_back(d);
  const at::Tensor finite = theta.isfinite();
  const at::Tensor keep = mask ? mask->logical_and(finite) : finite;
  const at::Tensor given = at::where(keep, theta, 0.0);
  at::Tensor free = given;
  if (projection == Projection::kMean || projection == Projection::kStd) {
    const at::Tensor entries = keep.expand_as(theta).sum(dims, /*keepdim=*/true).clamp_min(1);
    free = at::where(keep, free.sub(free.sum(dims, /*keepdim=*/true).div(entries)), 0.0);
  }
  if (projection == Projection::kNorm || projection == Projection::kStd) {
    const auto norm_of = [&](const at::Tensor& x) {
      at::Tensor norm =
          at::linalg_vector_norm(x.flatten(-instance_dims), 2, {-1}, /*keepdim=*/true);
      for (int64_t d = 1; d < instance_dims; ++d) norm = norm.unsqueeze(-1);
      return norm;
    };
    const at::Tensor norm = norm_of(free);
    const at::Tensor rounding =
        norm_of(given.detach()).mul(ops::epsilon(theta)).clamp_min(ops::smallest_normal(theta));
    free = free.div(at::where(norm.gt(rounding), norm, 1.0));
  }
  return at::where(keep, free, theta);
}

LayerOptions thresholds(SolverSpec solver, std::optional<NoiseKind> noise) {
  LayerOptions options{.solver = std::move(solver), .difference = Difference::kThresholds};
  if (noise) options.noise = NoiseSpec{.kind = *noise};
  options = with_noise(std::move(options));
  options.target = ThresholdTarget{.density = options.noise->kind};
  return options;
}

void move_tensors(const std::map<std::string, at::Tensor>& tensors, at::Device device,
                  bool non_blocking) {
  for (const auto& [name, tensor] : tensors) {
    tensor.set_data(tensor.to(device, tensor.scalar_type(), non_blocking));
  }
}

Layer::Layer(LayerOptions options) : options_(with_noise(std::move(options))) {
  validate(options_);
  if (const auto* target = std::get_if<AdaptiveTarget>(&options_.target)) {
    TORCH_CHECK_VALUE(std::isfinite(options_.initial_gbar) && options_.initial_gbar >= 0.0,
                      "[aimle::Layer] expected a finite initial_gbar >= 0 but got ",
                      options_.initial_gbar);
    state_ = {{"alpha", scalar(start_of(*target, options_.initial_alpha))},
              {"gbar", scalar(options_.initial_gbar)},
              {"updates", at::zeros({}, at::kLong)}};
    if (target->is_automatic()) state_["reach"] = scalar(0.0);
    if (target->momentum != 0.0) state_["velocity"] = scalar(0.0);
    if (options_.solver.size_is_unknown() && target->scale != AdaptiveTarget::Scale::kTheta) {
      state_["sizes"] = ops::unknown_sizes();
    }
  }
  training_settings_ = settings_text(true);
  eval_settings_ = settings_text(false);
  constants_["layer_stats"] =
      at::full({kLayerStats}, std::numeric_limits<double>::quiet_NaN(), at::kDouble);
  if (options_.noise->kind == NoiseKind::kSumOfGamma) {
    constants_["table"] =
        ops::call_op("aimle::sum_of_gamma_table",
                     {options_.noise->k, options_.noise->iterations, at::IValue()})[0]
            .toTensor();
  }
}

std::string Layer::settings_text(bool training) const {
  PassSettings settings = settings_of(options_);
  if (!training && !options_.noise_in_eval) {
    settings.noise.kind = NoiseKind::kNone;
    settings.samples = 1;
  }
  return ops::layer_settings_text(options_.solver.text(), settings, options_.output == "flat",
                                  training);
}

at::Tensor Layer::operator()(const at::Tensor& theta, const LayerCall& given) const {
  const bool noisy = training_ || options_.noise_in_eval;
  const NoiseKind kind = noisy ? options_.noise->kind : NoiseKind::kNone;
  at::Tensor key;
  if (given.key.has_value()) {
    key = *given.key;
  } else if (kind == NoiseKind::kNone) {
    key = at::zeros({2}, at::kLong);
  } else {
    key = draw_host_key(theta, options_.generator);
  }
  torch::jit::Stack inputs;
  torch::jit::push(inputs, theta, key, given.mask, given.row_data, value_in(constants_, "table"));
  torch::jit::Stack state = state_arguments();
  torch::jit::Stack settings = settings_arguments();
  if (options_.solver.function()) {
    const auto sizes = state_.find("sizes");
    return ops::staged_map({.function = options_.solver.function(),
                            .inputs = std::move(inputs),
                            .state = std::move(state),
                            .settings = std::move(settings),
                            .sizes = sizes == state_.end() ? at::Tensor() : sizes->second});
  }
  torch::jit::Stack stack = std::move(inputs);
  stack.insert(stack.end(), state.begin(), state.end());
  stack.insert(stack.end(), settings.begin(), settings.end());
  return ops::call_op("aimle::perturbed_map", std::move(stack))[0].toTensor();
}

torch::jit::Stack Layer::state_arguments() const {
  torch::jit::Stack state;
  torch::jit::push(state, value_in(state_, "alpha"), value_in(state_, "gbar"),
                   value_in(state_, "updates"),
                   value_in(state_, state_.contains("reach") ? "reach" : "velocity"),
                   value_in(constants_, "layer_stats"));
  return state;
}

torch::jit::Stack Layer::settings_arguments() const {
  const double temperature = *options_.theta_noise_temperature;
  torch::jit::Stack settings;
  torch::jit::push(settings, training_ ? training_settings_ : eval_settings_, temperature,
                   options_.target_noise_temperature.value_or(temperature));
  return settings;
}

void Layer::defer_updates() {
  at::Tensor& stats = constants_.at("layer_stats");
  if (state_.empty() || stats.size(0) == kSharedStats) return;
  stats.set_data(at::cat({stats, at::zeros({kWaitingCounts}, stats.options())}));
}

at::Tensor Layer::waiting_counts() const {
  const at::Tensor& stats = constants_.at("layer_stats");
  return stats.size(0) == kSharedStats ? stats.narrow(0, kLayerStats, kWaitingCounts)
                                       : at::Tensor();
}

void Layer::apply_counts(const at::Tensor& sum) {
  torch::jit::Stack stack = {sum};
  for (const torch::jit::Stack& part : {state_arguments(), settings_arguments()}) {
    stack.insert(stack.end(), part.begin(), part.end());
  }
  ops::call_op("aimle::apply_counts", std::move(stack));
}

std::map<std::string, at::Tensor> Layer::stats() const {
  std::map<std::string, at::Tensor> result;
  for (const char* known : {"alpha", "gbar", "updates"}) {
    if (state_.contains(known)) result[known] = state_.at(known);
  }
  const at::Tensor& seen = constants_.at("layer_stats");
  using Names = std::vector<std::pair<const char*, LayerStat>>;
  const Names of_thresholds = {
      {"zero_share", kZeroShare}, {"capped_share", kCappedShare}, {"capped_mass", kCappedMass}};
  const Names of_steps = {{"lambda_mean", kLambdaMean}, {"lambda_min", kLambdaMin},
                          {"lambda_max", kLambdaMax},   {"count", kCount},
                          {"zero_share", kZeroShare},   {"changed_share", kChangedShare}};
  const bool thresholds = options_.difference == Difference::kThresholds;
  for (const auto& [known, at_index] : thresholds ? of_thresholds : of_steps)
    result[known] = seen.select(0, at_index);
  if (options_.solver.has_costs()) {
    result["clipped_share"] = seen.select(0, kClippedShare);
  }
  return result;
}

}  // namespace aimle
