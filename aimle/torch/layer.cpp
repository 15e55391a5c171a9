#include "aimle/torch/layer.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "aimle/torch/layer_call.h"
#include "aimle/torch/value_error.h"

namespace aimle {
namespace {

at::Tensor scalar(double value) { return at::full({}, value, at::kDouble); }

std::vector<at::IValue> call(const char* op, torch::jit::Stack stack) {
  c10::Dispatcher::singleton().findSchemaOrThrow(op, "").callBoxed(stack);
  return stack;
}

c10::List<std::string> strings(std::initializer_list<const char*> values) {
  c10::List<std::string> list;
  for (const char* value : values) list.push_back(value);
  return list;
}

const char* name(Sense sense) { return sense == Sense::kMin ? "min" : "max"; }

const char* name(Difference difference) {
  switch (difference) {
    case Difference::kCentral:
      return "central";
    case Difference::kForward:
      return "forward";
    case Difference::kStraightThrough:
      return "straight_through";
    case Difference::kThresholds:
      return "thresholds";
  }
  return "";
}

const char* name(AdaptiveTarget::Scope scope) {
  switch (scope) {
    case AdaptiveTarget::Scope::kExample:
      return "example";
    case AdaptiveTarget::Scope::kSample:
      return "sample";
    case AdaptiveTarget::Scope::kBatch:
      return "batch";
  }
  return "";
}

void push_target(torch::jit::Stack& stack, const Target& target) {
  if (const auto* fixed = std::get_if<FixedTarget>(&target)) {
    torch::jit::push(stack, strings({"fixed"}), std::vector<double>{fixed->lambda});
    return;
  }
  if (const auto* thresholds = std::get_if<ThresholdTarget>(&target)) {
    const bool first = thresholds->order == ThresholdTarget::Order::kFirst;
    c10::List<std::string> names =
        strings({"thresholds", std::string(name(thresholds->density)).c_str(),
                 first ? "first" : "trapezoid"});
    torch::jit::push(stack, std::move(names), std::vector<double>{thresholds->max_weight});
    return;
  }
  const auto& adaptive = std::get<AdaptiveTarget>(target);
  const bool noise = adaptive.scale == AdaptiveTarget::Scale::kNoise;
  const bool additive = adaptive.rule == AdaptiveTarget::Rule::kAdditive;
  torch::jit::push(
      stack,
      strings({"adaptive", name(adaptive.scope), noise ? "noise" : "theta",
               additive ? "additive" : "multiplicative",
               adaptive.reference ? "reference" : "paper"}),
      std::vector<double>{adaptive.step, adaptive.target_norm, adaptive.decay, adaptive.factor,
                          adaptive.alpha_min, adaptive.alpha_max, adaptive.momentum});
}

/// Where alpha starts: as given, or at the rule's own start within the range.
double start_of(const AdaptiveTarget& target, std::optional<double> given) {
  ops::with_value_errors([&] { target.validate(); });
  const double low = target.alpha_min;
  const double high =
      target.alpha_max > 0.0 ? target.alpha_max : std::numeric_limits<double>::infinity();
  const bool additive = target.rule == AdaptiveTarget::Rule::kAdditive;
  const double start = given.value_or(std::clamp(additive ? low : 1.0, low, high));
  TORCH_CHECK_VALUE(low <= start && start <= high, "[aimle::Layer] expected ", low,
                    " <= initial_alpha <= ", high, " but got ", start);
  return start;
}

}  // namespace

SolverSpec argmax() { return {.name = "argmax", .args = {}}; }

SolverSpec topk(int64_t k) { return {.name = "topk", .args = {k}}; }

SolverSpec spanning_tree(int64_t vertices) { return {.name = "spanning_tree", .args = {vertices}}; }

SolverSpec grid_path(int64_t neighbourhood, std::vector<int64_t> source,
                     std::vector<int64_t> target, bool refuse_negative) {
  TORCH_CHECK_VALUE(source.size() == 2 && target.size() == 2,
                    "[aimle::grid_path] expected source and target to be (row, column)");
  return {.name = "grid_path",
          .args = {neighbourhood, source[0], source[1], target[0], target[1], refuse_negative},
          .sense = Sense::kMin};
}

LayerOptions aimle(SolverSpec solver) { return {.solver = std::move(solver)}; }

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
  options.noise.kind = NoiseKind::kNone;
  options.output = "mean";
  return options;
}

LayerOptions identity(SolverSpec solver) {
  LayerOptions options = ste(std::move(solver));
  options.noise.kind = NoiseKind::kNone;
  options.output = "mean";
  return options;
}

at::Tensor standardise(const at::Tensor& theta, int64_t instance_dims) {
  TORCH_CHECK_VALUE(1 <= instance_dims && instance_dims <= theta.dim(),
                    "[aimle::standardise] expected 1 <= instance_dims <= ", theta.dim(),
                    " but got ", instance_dims);
  std::vector<int64_t> dims;
  for (int64_t d = 1; d <= instance_dims; ++d) dims.push_back(-d);
  const at::Tensor centred = theta.sub(theta.mean(dims, /*keepdim=*/true));
  const at::Tensor norm = centred.square().sum(dims, /*keepdim=*/true).sqrt();
  return centred.div(norm.clamp_min(std::numeric_limits<float>::min()));
}

LayerOptions thresholds(SolverSpec solver, NoiseKind noise) {
  return {.solver = std::move(solver),
          .noise = {.kind = noise},
          .target = ThresholdTarget{.density = noise},
          .difference = Difference::kThresholds};
}

Layer::Layer(LayerOptions options) : options_(std::move(options)) {
  if (const auto* target = std::get_if<AdaptiveTarget>(&options_.target)) {
    state_ = {{"alpha", scalar(start_of(*target, options_.initial_alpha))},
              {"gbar", scalar(1.0)},
              {"updates", at::zeros({}, at::kLong)}};
    if (target->momentum != 0.0) state_["velocity"] = scalar(0.0);
  }
  constants_["layer_stats"] =
      at::full({ops::kLayerStats}, std::numeric_limits<double>::quiet_NaN(), at::kDouble);
  if (options_.noise.kind == NoiseKind::kSumOfGamma) {
    constants_["table"] = call("aimle::sum_of_gamma_table",
                               {options_.noise.k, options_.noise.iterations, at::IValue()})[0]
                              .toTensor();
  }
}

at::Tensor Layer::operator()(const at::Tensor& theta, const LayerCall& given) const {
  const bool noisy = training_ || options_.noise_in_eval;
  const NoiseKind kind = noisy ? options_.noise.kind : NoiseKind::kNone;
  at::Tensor key;
  if (given.key.has_value()) {
    key = *given.key;
  } else if (kind == NoiseKind::kNone) {
    key = at::zeros({2}, theta.options().dtype(at::kLong).requires_grad(false));
  } else {
    key = call("aimle::draw_key", {theta, options_.generator, int64_t{0}})[0].toTensor();
  }
  const auto tensor = [](const std::map<std::string, at::Tensor>& from, const char* key_name) {
    const auto found = from.find(key_name);
    return found == from.end() ? at::IValue() : at::IValue(found->second);
  };
  const double temperature = options_.theta_noise_temperature;
  torch::jit::Stack stack;
  torch::jit::push(
      stack, theta, key, given.mask, given.k, tensor(constants_, "table"), tensor(state_, "alpha"),
      tensor(state_, "gbar"), tensor(state_, "updates"), tensor(state_, "velocity"),
      tensor(constants_, "layer_stats"), options_.solver.name, options_.solver.args,
      std::string(aimle::name(kind)),
      moments(options_.noise.kind, options_.noise.k, options_.noise.iterations).stddev,
      noisy ? options_.nb_samples : int64_t{1},
      std::vector<double>{temperature, options_.target_noise_temperature.value_or(temperature)},
      std::string(name(options_.sense.value_or(options_.solver.sense))), options_.output,
      std::string(name(options_.difference)));
  push_target(stack, options_.target);
  torch::jit::push(stack, training_, int64_t{1});
  return call("aimle::perturbed_map", std::move(stack))[0].toTensor();
}

std::map<std::string, at::Tensor> Layer::stats() const {
  std::map<std::string, at::Tensor> result;
  for (const char* known : {"alpha", "gbar", "updates"}) {
    if (state_.contains(known)) result[known] = state_.at(known);
  }
  const at::Tensor& seen = constants_.at("layer_stats");
  using Names = std::vector<std::pair<const char*, ops::LayerStat>>;
  const Names of_thresholds = {{"zero_share", ops::kZeroShare},
                               {"capped_share", ops::kCappedShare},
                               {"capped_mass", ops::kCappedMass}};
  const Names of_steps = {{"lambda_mean", ops::kLambdaMean}, {"lambda_min", ops::kLambdaMin},
                          {"lambda_max", ops::kLambdaMax},   {"count", ops::kCount},
                          {"zero_share", ops::kZeroShare},   {"changed_share", ops::kChangedShare}};
  const bool thresholds = options_.difference == Difference::kThresholds;
  for (const auto& [known, at_index] : thresholds ? of_thresholds : of_steps)
    result[known] = seen.select(0, at_index);
  return result;
}

}  // namespace aimle
