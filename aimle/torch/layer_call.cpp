#include "aimle/torch/layer_call.h"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <array>
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
    {{"argmax", 0}, {"topk", 1}, {"spanning_tree", 1}, {"grid_path", 6}, {"callable", 2}}};

template <class Table>
auto parse(std::string_view argument, std::string_view word, const Table& allowed) {
  return parse_word("perturbed_map", argument, word, allowed);
}

void check_count(std::string_view argument, size_t got, size_t expected) {
  TORCH_CHECK_VALUE(got == expected, "[aimle::perturbed_map] expected ", expected, " values in ",
                    argument, " but got ", got);
}

Target parse_target(const c10::List<c10::IValue>& names, const std::vector<double>& values) {
  TORCH_CHECK_VALUE(!names.empty(), "[aimle::perturbed_map] expected target to name a kind");
  auto name = [&](size_t i) -> std::string { return names.get(i).toStringRef(); };
  if (name(0) == "fixed") {
    check_count("target_args", values.size(), 1);
    return FixedTarget{.lambda = values[0]};
  }
  if (name(0) == "thresholds") {
    check_count("target", names.size(), 3);
    check_count("target_args", values.size(), 1);
    return ThresholdTarget{.density = parse("density", name(1), kNoises),
                           .order = parse("order", name(2), kOrders),
                           .max_weight = values[0]};
  }
  TORCH_CHECK_VALUE(name(0) == "adaptive",
                    "[aimle::perturbed_map] expected target to be \"fixed\", \"adaptive\" or "
                    "\"thresholds\" but got \"",
                    name(0), "\"");
  check_count("target", names.size(), 5);
  check_count("target_args", values.size(), 7);
  return AdaptiveTarget{.step = values[0],
                        .target_norm = values[1],
                        .decay = values[2],
                        .scope = parse("scope", name(1), kScopes),
                        .scale = parse("scale", name(2), kScales),
                        .rule = parse("rule", name(3), kRules),
                        .factor = values[3],
                        .alpha_min = values[4],
                        .alpha_max = values[5],
                        .momentum = values[6],
                        .reference = parse("variant", name(4), kVariants)};
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
  const std::vector<double> temperatures = given[5].toDoubleVector();
  check_count("temperatures", temperatures.size(), 2);
  settings.flat = given[7].toStringRef() == "flat";
  settings.adapt = given[11].toBool();
  settings.check = check_level("perturbed_map", given[12].toInt());
  settings.estimator =
      EstimatorSettings{.noise = {.kind = parse("noise", given[2].toStringRef(), kNoises)},
                        .noise_stddev = given[3].toDouble(),
                        .samples = given[4].toInt(),
                        .theta_temperature = temperatures[0],
                        .target_temperature = temperatures[1],
                        .sense = parse("sense", given[6].toStringRef(), kSenses),
                        .output = parse("output", given[7].toStringRef(), kOutputs),
                        .difference = parse("difference", given[8].toStringRef(), kDifferences),
                        .target = parse_target(given[9].toList(), given[10].toDoubleVector())};
  with_value_errors([&] { settings.estimator.validate(); });
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
  check_same_device("key", input.key, input.theta);
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
  const bool adaptive = std::holds_alternative<AdaptiveTarget>(settings.estimator.target);
  const auto check = [&](const char* name, const at::Tensor& tensor, at::ScalarType type,
                         bool needed, c10::SymIntArrayRef sizes = {}) {
    TORCH_CHECK_VALUE(tensor.defined() || !needed,
                      "[aimle::perturbed_map] an adaptive target needs ", name);
    if (tensor.defined()) check_handed(name, tensor, type, sizes, input);
  };
  check("alpha", state.alpha, at::kDouble, adaptive);
  check("gbar", state.gbar, at::kDouble, adaptive);
  check("updates", state.updates, at::kLong, adaptive);
  check("velocity", state.velocity, at::kDouble, false);
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
