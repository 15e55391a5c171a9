#include "aimle/torch/estimate/sampled.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "aimle/torch/dtype.h"

namespace aimle {

Sampled::Sampled(const EstimatorInfo& info, SolverSpec solver, const EstimatorOptions& options)
    : Estimator(info),
      solver_(std::move(solver)),
      nb_samples_(options.nb_samples.value_or(1)),
      output_(options.output.value_or("samples")),
      noise_in_eval_(options.noise_in_eval.value_or(false)),
      generator_(options.generator) {
  check_samples(info.name, nb_samples_, 1);
  check_word(info.name, "output", output_, {"samples", "flat", "mean"});
}

at::Tensor Sampled::forward(const at::Tensor& theta, const LayerCall& call) const {
  check_theta(name(), theta);
  TORCH_CHECK_TYPE(!call.k || solver_.name == "topk", "[aimle::", name(),
                   "] takes k with topk only: ", solver_.name,
                   " has no number of entries to choose");
  const at::Tensor z = samples(hide(theta, call.mask), call);
  if (output_ == "mean") return z.mean(-2);
  return output_ == "flat" ? z.reshape({-1, z.size(-1)}) : z;
}

at::Tensor Sampled::key(const at::Tensor& theta, const LayerCall& call) const {
  return call.key ? call.key->to(theta.device()) : draw_key(theta, generator_);
}

at::Tensor Sampled::perturbed(const at::Tensor& scores, const LayerCall& call) const {
  const at::Tensor rows = scores.unsqueeze(-2);
  if (!noisy()) return rows;
  const at::IntArrayRef sizes = scores.sizes();
  const at::Tensor eps = sample_noise({.kind = NoiseKind::kGumbel}, key(scores, call),
                                      sizes.slice(0, sizes.size() - 1), nb_samples_, sizes.back());
  return rows.add(eps.to(scores.scalar_type()));
}

at::Tensor Sampled::draws(const at::Tensor& scores, const LayerCall& call, int64_t count) const {
  const at::IntArrayRef sizes = scores.sizes();
  const at::IntArrayRef batch = sizes.slice(0, sizes.size() - 1);
  if (!noisy()) {
    std::vector<int64_t> shape = batch.vec();
    shape.insert(shape.end(), {1, count, sizes.back()});
    return scores.new_zeros(shape);
  }
  return sample_noise({.kind = NoiseKind::kGumbel}, key(scores, call), batch, nb_samples_,
                      {count, sizes.back()})
      .to(scores.scalar_type());
}

at::Tensor Sampled::solved(const at::Tensor& x, const LayerCall& call) const {
  return solve(solver_, x.detach(), per_sample(call));
}

at::Tensor hide(const at::Tensor& theta, const std::optional<at::Tensor>& mask) {
  if (!mask) return theta;
  return theta.masked_fill(mask->logical_not(), -std::numeric_limits<double>::infinity());
}

at::Tensor straight_through(const at::Tensor& hard, const at::Tensor& soft) {
  return hard.detach().add(soft.sub(soft.detach()));
}

RowLimits per_sample(const LayerCall& call) {
  return {.k = call.k ? std::optional(call.k->unsqueeze(-1)) : std::nullopt};
}

void check_samples(const std::string& name, int64_t nb_samples, int64_t least) {
  TORCH_CHECK_VALUE(nb_samples >= least, "[aimle::", name, "] expected nb_samples >= ", least,
                    " but got nb_samples=", nb_samples);
}

void check_word(const std::string& name, const std::string& setting, const std::string& value,
                const std::vector<std::string>& allowed) {
  std::string words;
  for (const std::string& word : allowed) words += (words.empty() ? "\"" : " or \"") + word + "\"";
  TORCH_CHECK_VALUE(std::find(allowed.begin(), allowed.end(), value) != allowed.end(),
                    "[aimle::", name, "] expected ", setting, " to be ", words, " but got \"",
                    value, "\"");
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
