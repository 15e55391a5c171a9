#include "aimle/torch/layer_call.h"

#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <string_view>

#include "aimle/noise/quantile_table.h"
#include "aimle/torch/dtype.h"
#include "aimle/torch/layer_schema.h"
#include "aimle/torch/setting_names.h"
#include "aimle/torch/solvers.h"
#include "aimle/torch/value_error.h"

namespace aimle::ops {
namespace {

constexpr Words<size_t, 5> kSolverArguments = {
    {{"argmax", 0}, {"topk", 1}, {"spanning_tree", 1}, {"grid_path", 6}, {"callable", 3}}};

template <class Table>
auto parse(std::string_view argument, std::string_view word, const Table& allowed) {
  return parse_word("perturbed_map", argument, word, allowed);
}

void check_count(std::string_view argument, size_t got, size_t expected) {
  TORCH_CHECK_VALUE(got == expected, "[aimle::perturbed_map] expected ", expected, " values in ",
                    argument, " but got ", got);
}

using WordList = c10::SmallVector<std::string_view, 10>;

WordList split(std::string_view text) {
  WordList words;
  while (true) {
    const size_t end = text.find(' ');
    words.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return words;
    text.remove_prefix(end + 1);
  }
}

Target parse_target(at::ArrayRef<std::string_view> words, at::ArrayRef<double> values) {
  if (words[0] == "fixed") {
    check_count("target", words.size(), 1);
    check_count("target_args", values.size(), 1);
    return FixedTarget{.lambda = values[0]};
  }
  if (words[0] == "thresholds") {
    check_count("target", words.size(), 3);
    check_count("target_args", values.size(), 1);
    return ThresholdTarget{.density = parse("density", words[1], kNoises),
                           .order = parse("order", words[2], kOrders),
                           .max_weight = values[0]};
  }
  TORCH_CHECK_VALUE(words[0] == "adaptive",
                    "[aimle::perturbed_map] expected target to be \"fixed\", \"adaptive\" or "
                    "\"thresholds\" but got \"",
                    words[0], "\"");
  check_count("target", words.size(), 5);
  check_count("target_args", values.size(), 7);
  return AdaptiveTarget{.step = values[0],
                        .target_norm = values[1],
                        .decay = values[2],
                        .scope = parse("scope", words[1], kScopes),
                        .scale = parse("scale", words[2], kScales),
                        .rule = parse("rule", words[3], kRules),
                        .factor = values[3],
                        .alpha_min = values[4],
                        .alpha_max = values[5],
                        .momentum = values[6],
                        .reference = parse("variant", words[4], kVariants)};
}

c10::SymIntArrayRef batch_of(const LayerInput& input, const LayerSettings& settings) {
  return input.theta.sym_sizes().slice(0, input.theta.dim() - settings.instance_dims());
}

c10::SymIntArrayRef instance_of(const LayerInput& input, const LayerSettings& settings) {
  return input.theta.sym_sizes().slice(input.theta.dim() - settings.instance_dims());
}

void check_same_device(const char* name, const at::Tensor& tensor, const at::Tensor& theta) {
  TORCH_CHECK_VALUE(tensor.device() == theta.device(), "[aimle::perturbed_map] expected ", name,
                    " on theta's device ", theta.device(), " but it is on ", tensor.device());
}

}  // namespace

LayerSettings parse_settings(at::ArrayRef<c10::IValue> given) {
  LayerSettings settings;
  settings.solver = given[0].toStringRef();
  settings.solver_args = given[1].toIntVector();
  check_count("solver_args", settings.solver_args.size(),
              parse("solver", settings.solver, kSolverArguments));
  const WordList words = split(given[2].toStringRef());
  const std::vector<int64_t> counts = given[3].toIntVector();
  const std::vector<double> scales = given[4].toDoubleVector();
  constexpr size_t kTargetWord = 4, kTargetScale = 4;
  TORCH_CHECK_VALUE(words.size() > kTargetWord,
                    "[aimle::perturbed_map] expected choices to name noise, sense, output, "
                    "difference and target but got \"",
                    given[2].toStringRef(), "\"");
  check_count("counts", counts.size(), 3);
  TORCH_CHECK_VALUE(scales.size() >= kTargetScale, "[aimle::perturbed_map] expected at least ",
                    kTargetScale, " values in scales but got ", scales.size());
  settings.flat = words[2] == "flat";
  settings.adapt = counts[1] != 0;
  settings.check = check_level("perturbed_map", counts[2]);
  settings.estimator = EstimatorSettings{
      .noise = {.kind = parse("noise", words[0], kNoises)},
      .noise_stddev = scales[0],
      .noise_mean = scales[3],
      .samples = counts[0],
      .theta_temperature = scales[1],
      .target_temperature = scales[2],
      .sense = parse("sense", words[1], kSenses),
      .output = parse("output", words[2], kOutputs),
      .difference = parse("difference", words[3], kDifferences),
      .target = parse_target(at::ArrayRef<std::string_view>(words).slice(kTargetWord),
                             at::ArrayRef<double>(scales).slice(kTargetScale))};
  with_value_errors([&] { settings.estimator.validate(); });
  check_sense("perturbed_map", settings.solver, settings.estimator.sense);
  TORCH_CHECK_VALUE(
      scales[3] == 0.0 || settings.solver == "grid_path" || settings.solver == "callable",
      "[aimle::perturbed_map] expected noise that is not centred for \"", settings.solver,
      "\", whose solutions have one size, but got ", scales[3], " to be subtracted from it");
  return settings;
}

Solver make_solver(const LayerInput& input, const LayerSettings& settings) {
  const at::Tensor& theta = input.theta;
  const std::vector<int64_t>& args = settings.solver_args;
  if (settings.solver == "argmax") return argmax_settings(theta);
  if (settings.solver == "topk") return topk_settings(theta, args[0], input.k.has_value());
  if (settings.solver == "spanning_tree") return spanning_tree_settings(theta, args[0]);
  TORCH_CHECK_VALUE(settings.solver == "grid_path", "[aimle::perturbed_map] \"", settings.solver,
                    "\" is no native solver");
  return grid_path_settings(theta, args[0], {args[1], args[2]}, {args[3], args[4]},
                            args[5] != 0 ? "error" : "clip");
}

void check_layer(const LayerInput& input, const LayerSettings& settings) {
  check_input(solver_input(input, settings));
  TORCH_CHECK_VALUE(input.key.device() == input.theta.device() || input.key.is_cpu(),
                    "[aimle::perturbed_map] expected key on theta's device ", input.theta.device(),
                    " or on the CPU but it is on ", input.key.device());
  TORCH_CHECK_TYPE(input.key.scalar_type() == at::kLong,
                   "[aimle::perturbed_map] expected key of type int64 but got ",
                   dtype_name(input.key));
  TORCH_CHECK_VALUE(input.key.dim() == 1 && input.key.sym_size(0) == 2,
                    "[aimle::perturbed_map] expected key of shape [2] but got ",
                    input.key.sym_sizes());
  if (settings.estimator.noise.kind == NoiseKind::kSumOfGamma) {
    TORCH_CHECK_VALUE(input.table.has_value(),
                      "[aimle::perturbed_map] noise=\"sum_of_gamma\" needs its table");
    check_handed("table", *input.table, at::kFloat, {kQuantileTableSize}, input);
  }
}

void check_gradient(const at::Tensor& dy, const LayerInput& input, const LayerSettings& settings) {
  const std::vector<c10::SymInt> expected = result_sizes(input, settings);
  TORCH_CHECK_VALUE(dy.sym_sizes() == c10::SymIntArrayRef(expected),
                    "[aimle::perturbed_map] expected a gradient of shape ",
                    c10::SymIntArrayRef(expected), " but got ", dy.sym_sizes());
  TORCH_CHECK_TYPE(dy.scalar_type() == input.theta.scalar_type(),
                   "[aimle::perturbed_map] expected a gradient of theta's type ",
                   dtype_name(input.theta), " but got ", dtype_name(dy));
  check_same_device("the gradient", dy, input.theta);
}

void check_state(const LayerState& state, const LayerInput& input, const LayerSettings& settings) {
  const auto* target = std::get_if<AdaptiveTarget>(&settings.estimator.target);
  const bool adaptive = target != nullptr;
  const auto check = [&](const char* name, const at::Tensor& tensor, at::ScalarType type,
                         bool needed, c10::SymIntArrayRef sizes = {}) {
    TORCH_CHECK_VALUE(tensor.defined() || !needed,
                      "[aimle::perturbed_map] an adaptive target needs ", name);
    if (tensor.defined()) check_handed(name, tensor, type, sizes, input);
  };
  check("alpha", state.alpha, at::kDouble, adaptive);
  check("gbar", state.gbar, at::kDouble, adaptive);
  check("updates", state.updates, at::kLong, adaptive);
  check("memory", state.memory, at::kDouble, adaptive && target->is_automatic());
  check("stats", state.stats, at::kDouble, false, {kLayerStats});
}

void check_handed(const char* name, const at::Tensor& tensor, at::ScalarType type,
                  c10::SymIntArrayRef sizes, const LayerInput& input) {
  check_same_device(name, tensor, input.theta);
  TORCH_CHECK_TYPE(tensor.scalar_type() == type, "[aimle::perturbed_map] expected ", name, " of ",
                   c10::getDtypeNames(type).first, " but got ", dtype_name(tensor));
  TORCH_CHECK_VALUE(tensor.sym_sizes() == sizes, "[aimle::perturbed_map] expected ", name,
                    " of shape ", sizes, " but got ", tensor.sym_sizes());
}

c10::SymInt example_count(const LayerInput& input, const LayerSettings& settings) {
  c10::SymInt count = 1;
  for (const c10::SymInt& size : batch_of(input, settings)) count = count * size;
  return count;
}

int64_t gradient_rows(const LayerSettings& settings) { return gradient_rows(settings.estimator); }

SolverInput solver_input(const LayerInput& input, const LayerSettings& settings) {
  return {.op = "perturbed_map",
          .name = "theta",
          .scores = input.theta,
          .instance_dims = settings.instance_dims(),
          .mask = input.mask,
          .row_k = input.k,
          .k = settings.solver == "topk" ? settings.solver_args[0] : 1};
}

std::vector<c10::SymInt> result_sizes(const LayerInput& input, const LayerSettings& settings) {
  const c10::SymIntArrayRef batch = batch_of(input, settings);
  const c10::SymIntArrayRef instance = instance_of(input, settings);
  std::vector<c10::SymInt> sizes;
  if (settings.flat) {
    sizes.push_back(example_count(input, settings) * settings.samples());
  } else {
    sizes.assign(batch.begin(), batch.end());
    if (!settings.mean()) sizes.emplace_back(settings.samples());
  }
  sizes.insert(sizes.end(), instance.begin(), instance.end());
  return sizes;
}

std::vector<c10::SymInt> bits_sizes(const LayerInput& input, const LayerSettings& settings) {
  if (!keeps_solution(settings.estimator)) return {0};
  c10::SymInt n = 1;
  for (const c10::SymInt& size : instance_of(input, settings)) n = n * size;
  return {example_count(input, settings) * settings.samples(), (n + 7) / 8};
}

std::vector<c10::SymInt> score_sizes(const LayerInput& input, const LayerSettings& settings) {
  const c10::SymIntArrayRef instance = instance_of(input, settings);
  std::vector<c10::SymInt> sizes = {example_count(input, settings) * settings.samples()};
  sizes.insert(sizes.end(), instance.begin(), instance.end());
  return sizes;
}

}  // namespace aimle::ops
