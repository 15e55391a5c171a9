#include "aimle/torch/estimate/sampled.h"

#include <ATen/ops/full.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "aimle/base/shown_value.h"
#include "aimle/torch/solve/solver_checks.h"
#include "aimle/torch/tensor/dtype.h"
#include "aimle/torch/tensor/find_op.h"

namespace aimle {

at::Tensor own_noise(const SampleRequest& request, std::optional<int64_t> draws) {
  using Op = at::Tensor(const at::Tensor&, c10::SymIntArrayRef, c10::SymInt, c10::SymIntArrayRef);
  static const auto gumbel = ops::find_op<Op>("aimle::gumbel");
  static const auto logistic = ops::find_op<Op>("aimle::logistic");
  const SolverKind* kind = request.solver.kind();
  const auto& op = kind != nullptr && kind->noise == "logistic" ? logistic : gumbel;
  const at::Tensor& scores = request.scores;
  const int64_t batch_dims = scores.dim() - request.solver.instance_dims();
  const c10::SymIntArrayRef batch = scores.sym_sizes().slice(0, batch_dims);
  std::vector<c10::SymInt> instance = scores.sym_sizes().slice(batch_dims).vec();
  if (draws) instance.insert(instance.begin(), *draws);
  if (!request.key) {
    std::vector<c10::SymInt> sizes = batch.vec();
    sizes.emplace_back(1);
    sizes.insert(sizes.end(), instance.begin(), instance.end());
    return scores.new_zeros_symint(sizes);
  }
  return op.call(request.key->to(scores.device()), batch, request.nb_samples, instance)
      .to(scores.scalar_type());
}

at::Tensor perturbed(const SampleRequest& request) {
  const at::Tensor rows = request.scores.unsqueeze(sample_dim(request));
  return request.key ? rows.add(own_noise(request)) : rows;
}

at::Tensor solved(const SampleRequest& request, const at::Tensor& x) {
  return solve(request.solver, x.detach(), per_sample(request));
}

at::Tensor exact_or_solved(const SampleRequest& request) {
  const at::Tensor fixed = request.scores.detach();
  if (!request.key) return solved(request, fixed.unsqueeze(sample_dim(request)));
  return exact_sample(request.solver, fixed, request.key->to(fixed.device()), request.nb_samples,
                      per_row(request));
}

int64_t sample_dim(const SampleRequest& request) { return -1 - request.solver.instance_dims(); }

RowLimits per_row(const SampleRequest& request) {
  return {.mask = request.mask, .row_data = request.row_data};
}

RowLimits per_sample(const SampleRequest& request) {
  RowLimits limits = per_row(request);
  const int64_t dims = request.solver.kind()->takes_data;
  if (limits.row_data && (dims == 0 || limits.row_data->dim() > dims)) {
    limits.row_data = limits.row_data->unsqueeze(-1 - dims);
  }
  if (limits.mask && limits.mask->dim() > request.solver.instance_dims()) {
    limits.mask = limits.mask->unsqueeze(sample_dim(request));
  }
  return limits;
}

at::Tensor hide(const at::Tensor& theta, const std::optional<at::Tensor>& mask) {
  if (!mask) return theta;
  return theta.masked_fill(mask->logical_not(), -std::numeric_limits<double>::infinity());
}

at::Tensor straight_through(const at::Tensor& hard, const at::Tensor& soft) {
  return hard.detach().add(soft.sub(soft.detach()));
}

at::Tensor samples_of(SampleFormula* formula, SampleRequest request, const at::Tensor& theta,
                      const std::string& output) {
  request.scores = hide(theta.to(ops::native_type(theta)), request.mask);
  const at::Tensor z = formula(request);
  const int64_t samples = sample_dim(request);
  const at::Tensor shaped = output == "mean"   ? z.mean(samples)
                            : output == "flat" ? z.flatten(0, samples)
                                               : z;
  return shaped.to(theta.scalar_type());
}

Sampled::Sampled(const EstimatorInfo& info, SolverSpec solver, const EstimatorOptions& options,
                 SampleFormula* formula)
    : Estimator(info),
      formula_(formula),
      solver_(std::move(solver)),
      nb_samples_(options.nb_samples.value_or(1)),
      output_(options.output.value_or("samples")),
      hard_(options.hard.value_or(false)),
      draws_(options.draws.value_or(kConditionalDraws)),
      noise_in_eval_(options.noise_in_eval.value_or(false)),
      generator_(options.generator) {
  check_samples(info.name, nb_samples_, 1);
  check_draws(info.name, draws_);
  check_word(info.name, "output", output_, {"samples", "flat", "mean"});
  if (!info.takes("temperature")) return;
  const double temperature = options.temperature.value_or(1.0);
  check_temperature(info.name, temperature);
  state_["temperature"] = at::full({}, temperature, at::kFloat);
}

void Sampled::set_temperature(double temperature) {
  if (state_.empty()) return Estimator::set_temperature(temperature);
  check_temperature(name(), temperature);
  state_.at("temperature").fill_(temperature);
}

at::Tensor Sampled::forward(const at::Tensor& theta, const LayerCall& call) const {
  check_theta(name(), theta);
  if (call.row_data) ops::check_takes_row_data(name(), *solver_.kind());
  SampleRequest request{.solver = solver_,
                        .mask = call.mask,
                        .row_data = call.row_data,
                        .nb_samples = nb_samples_,
                        .hard = hard_,
                        .draws = draws_};
  if (is_training() || noise_in_eval_) {
    request.key = call.key ? call.key : draw_key(theta, generator_);
  }
  if (!state_.empty()) request.temperature = state_.at("temperature");
  return samples_of(formula_, std::move(request), theta, output_);
}

void check_samples(const std::string& name, int64_t nb_samples, int64_t least) {
  TORCH_CHECK_VALUE(nb_samples >= least, "[aimle::", name, "] expected nb_samples >= ", least,
                    " but got nb_samples=", nb_samples);
}

void check_draws(const std::string& name, int64_t draws) {
  TORCH_CHECK_VALUE(draws >= 1, "[aimle::", name, "] expected draws >= 1 but got draws=", draws);
}

void check_word(const std::string& name, const std::string& setting, const std::string& value,
                const std::vector<std::string>& allowed) {
  std::string words;
  for (const std::string& word : allowed) words += (words.empty() ? "\"" : " or \"") + word + "\"";
  TORCH_CHECK_VALUE(std::find(allowed.begin(), allowed.end(), value) != allowed.end(),
                    "[aimle::", name, "] expected ", setting, " to be ", words, " but got \"",
                    shown_value(value), "\"");
}

void check_temperature(const std::string& name, double temperature) {
  TORCH_CHECK_VALUE(std::isfinite(temperature) && temperature > 0.0, "[aimle::", name,
                    "] expected a finite temperature > 0 but got ", temperature);
}

void check_theta(const std::string& name, const at::Tensor& theta) {
  TORCH_CHECK_TYPE(theta.is_floating_point(), "[aimle::", name,
                   "] expected theta of a floating-point type but got ", ops::dtype_name(theta));
}

}  // namespace aimle
