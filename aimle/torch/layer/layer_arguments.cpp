#include "aimle/torch/layer/layer_arguments.h"

#include <ATen/core/ivalue.h>

#include "aimle/noise/quantile_table.h"
#include "aimle/torch/noise/noise_ops.h"
#include "aimle/torch/tensor/dtype.h"

namespace aimle::ops {
namespace {

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

Solver make_solver(const LayerInput& input, const LayerSettings& settings) {
  TORCH_CHECK_VALUE(settings.solver != nullptr,
                    "[aimle::perturbed_map] a callable is not a native solver: its layer must call "
                    "the ops perturb, step and difference");
  return fit(*settings.solver, input.theta, input.row_data);
}

void check_layer(const LayerInput& input, const LayerSettings& settings) {
  if (input.row_data && settings.solver) {
    check_takes_row_data("perturbed_map", settings.solver->kind());
  }
  check_input(solver_input(input, settings));
  TORCH_CHECK_VALUE(input.key.device() == input.theta.device() || input.key.is_cpu(),
                    "[aimle::perturbed_map] expected key on theta's device ", input.theta.device(),
                    " or on the CPU but it is on ", input.key.device());
  TORCH_CHECK_TYPE(input.key.scalar_type() == at::kLong,
                   "[aimle::perturbed_map] expected key of type int64 but got ",
                   dtype_name(input.key));
  TORCH_CHECK_VALUE(has_shape_of_key(input.key),
                    "[aimle::perturbed_map] expected key of shape [2] or [3] but got ",
                    input.key.sym_sizes());
  if (settings.estimator.noise.kind == NoiseKind::kSumOfGamma) {
    TORCH_CHECK_VALUE(input.table.has_value(),
                      "[aimle::perturbed_map] noise=\"sum_of_gamma\" needs its table");
    check_handed("table", *input.table, at::kFloat, {kQuantileTableSize}, input);
  }
}

void check_gradient(const at::Tensor& dy, const LayerInput& input, const LayerSettings& settings) {
  const at::SymDimVector expected = result_sizes(input, settings);
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
  const int64_t length = state.stats.defined() && state.stats.sym_numel() == kSharedStats
                             ? kSharedStats
                             : int64_t{kLayerStats};
  check("stats", state.stats, at::kDouble, false, {length});
}

void check_counts(const at::Tensor& counts, const LayerState& state,
                  const LayerSettings& settings) {
  TORCH_CHECK_VALUE(std::holds_alternative<AdaptiveTarget>(settings.estimator.target),
                    "[aimle::apply_counts] expected the settings of an adaptive target");
  check_state(state, LayerInput{.theta = counts}, settings);
  TORCH_CHECK_VALUE(state.waiting() != nullptr, "[aimle::apply_counts] expected stats of shape [",
                    kSharedStats, "]");
  check_handed("counts", counts, at::kDouble, {kWaitingCounts}, LayerInput{.theta = counts});
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
          .row_data = input.row_data,
          .data_dims = settings.solver && settings.solver->kind().takes_data,
          .k = settings.solver ? settings.solver->solution_size().ones : 1};
}

at::SymDimVector result_sizes(const LayerInput& input, const LayerSettings& settings) {
  const c10::SymIntArrayRef batch = batch_of(input, settings);
  const c10::SymIntArrayRef instance = instance_of(input, settings);
  at::SymDimVector sizes;
  if (settings.flat) {
    sizes.push_back(example_count(input, settings) * settings.samples());
  } else {
    sizes.assign(batch.begin(), batch.end());
    if (!settings.mean()) sizes.emplace_back(settings.samples());
  }
  sizes.insert(sizes.end(), instance.begin(), instance.end());
  return sizes;
}

at::SymDimVector bits_sizes(const LayerInput& input, const LayerSettings& settings) {
  if (!keeps_solution(settings.estimator)) return {0};
  c10::SymInt n = 1;
  for (const c10::SymInt& size : instance_of(input, settings)) n = n * size;
  const bool thresholds = settings.estimator.difference == Difference::kThresholds;
  const int64_t rivals = thresholds ? sizeof(KeptRivals) : 0;
  return {example_count(input, settings) * settings.samples(), (n + 7) / 8 + rivals};
}

at::SymDimVector score_sizes(const LayerInput& input, const LayerSettings& settings) {
  const c10::SymIntArrayRef instance = instance_of(input, settings);
  at::SymDimVector sizes = {example_count(input, settings) * settings.samples()};
  sizes.insert(sizes.end(), instance.begin(), instance.end());
  return sizes;
}

}  // namespace aimle::ops
