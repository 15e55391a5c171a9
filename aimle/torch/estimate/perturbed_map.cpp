// Estimators that are just a perturb-and-MAP layer (layer.h):
//
//   aimle, aimle_forward, aimle_noise   Minervini, Franceschi, Niepert, AAAI 2023
//   imle, imle_central                  Niepert, Minervini, Franceschi, NeurIPS 2021
//   dbb                                 Vlastelica, Paulus, Musil, Martius, Rolinek, ICLR 2020
//   ste                                 Bengio, Leonard, Courville, 2013
//   identity                            Sahoo et al., ICLR 2023
//   thresholds                          aimle/estimate/thresholds.h
#include <limits>
#include <utility>

#include "aimle/torch/estimate/builders.h"
#include "aimle/torch/estimate/formulas.h"
#include "aimle/torch/estimate/layer_estimator.h"
#include "aimle/torch/layer/setting_names.h"

namespace aimle {
namespace {

Projection parse_projection(const char* owner, const std::string& word) {
  constexpr ops::Words<Projection, 4> kProjections = {{{"std", Projection::kStd},
                                                       {"mean", Projection::kMean},
                                                       {"norm", Projection::kNorm},
                                                       {"none", Projection::kNone}}};
  return ops::parse_word(owner, "projection", word, kProjections);
}

class Identity final : public LayerEstimator {
 public:
  Identity(const EstimatorInfo& info, const LayerOptions& options, Projection projection)
      : LayerEstimator(info, options),
        projection_(projection),
        instance_dims_(options.solver.instance_dims()) {}

  at::Tensor forward(const at::Tensor& theta, const LayerCall& call) const override {
    return LayerEstimator::forward(project(theta, projection_, instance_dims_, call.mask), call);
  }

 private:
  Projection projection_;
  int64_t instance_dims_;
};

/// Applies the options common to all layers to the defaults of the named one.
LayerOptions with_common(LayerOptions layer, const EstimatorOptions& options) {
  if (options.noise) layer.noise = *options.noise;
  layer.nb_samples = options.nb_samples.value_or(layer.nb_samples);
  if (options.theta_noise_temperature) {
    layer.theta_noise_temperature = options.theta_noise_temperature;
  }
  layer.target_noise_temperature = options.target_noise_temperature;
  if (options.sense) {
    layer.sense = ops::parse_word("estimator", "sense", *options.sense, ops::kSenses);
  }
  layer.output = options.output.value_or(layer.output);
  layer.noise_in_eval = options.noise_in_eval.value_or(false);
  layer.generator = options.generator;
  return layer;
}

/// `target` with the given settings; a step without a rule selects the additive one.
AdaptiveTarget adaptive_target(AdaptiveTarget target, const EstimatorOptions& options) {
  const bool reference = options.reference.value_or(false);
  if (reference) target = AdaptiveTarget::paper();
  target.reference = reference;
  if (reference) target.scope = AdaptiveTarget::Scope::kBatch;
  target.step = options.step.value_or(target.step);
  if (options.target_norm) {  // -1 is AdaptiveTarget::kAutomatic
    TORCH_CHECK_VALUE(*options.target_norm >= 0.0,
                      "[aimle::estimator] expected a finite target_norm >= 0, or none to measure "
                      "it, but got ",
                      *options.target_norm);
    target.target_norm = *options.target_norm;
  }
  target.decay = options.decay.value_or(target.decay);
  target.factor = options.factor.value_or(target.factor);
  target.momentum = options.momentum.value_or(target.momentum);
  if (options.scope) {
    target.scope = ops::parse_word("estimator", "scope", *options.scope, ops::kScopes);
  }
  if (options.scale) {
    target.scale = ops::parse_word("estimator", "scale", *options.scale, ops::kScales);
  }
  if (options.rule) {
    target.rule = ops::parse_word("estimator", "rule", *options.rule, ops::kRules);
  } else if (options.step) {
    target.rule = AdaptiveTarget::Rule::kAdditive;
  }
  if (options.alpha_range) {
    const auto [low, high] = *options.alpha_range;
    TORCH_CHECK_VALUE(high > 0.0,
                      "[aimle::estimator] expected alpha_range with an upper end > 0 but "
                      "got (",
                      low, ", ", high, ")");
    target.alpha_min = low;
    target.alpha_max = high == std::numeric_limits<double>::infinity() ? 0.0 : high;
  }
  return target;
}

LayerOptions imle_options(SolverSpec solver, const EstimatorOptions& options) {
  return with_common(imle(std::move(solver), options.lambda.value_or(1.0)), options);
}

std::unique_ptr<Estimator> layer_estimator(const EstimatorInfo& info, LayerOptions options) {
  return std::make_unique<LayerEstimator>(info, std::move(options));
}

}  // namespace

LayerOptions aimle_options(SolverSpec solver, const EstimatorOptions& options) {
  LayerOptions layer = with_common(aimle(std::move(solver)), options);
  if (options.symmetric_perturbation) {
    layer.difference =
        *options.symmetric_perturbation ? Difference::kCentral : Difference::kForward;
  }
  layer.target = adaptive_target(default_target(layer.solver, layer.difference), options);
  layer.initial_alpha = options.initial_alpha;
  layer.initial_gbar = options.initial_gbar.value_or(layer.initial_gbar);
  return layer;
}

std::unique_ptr<Estimator> build_aimle(const EstimatorInfo& info, SolverSpec solver,
                                       const EstimatorOptions& options) {
  return layer_estimator(info, aimle_options(std::move(solver), options));
}

std::unique_ptr<Estimator> build_aimle_forward(const EstimatorInfo& info, SolverSpec solver,
                                               const EstimatorOptions& options) {
  EstimatorOptions changed = options;
  changed.symmetric_perturbation = false;
  return layer_estimator(info, aimle_options(std::move(solver), changed));
}

std::unique_ptr<Estimator> build_aimle_noise(const EstimatorInfo& info, SolverSpec solver,
                                             const EstimatorOptions& options) {
  EstimatorOptions changed = options;
  changed.scale = options.scale.value_or("noise");
  if (!options.alpha_range) changed.alpha_range = {1.0, 1.0};  // the step does not adapt
  return layer_estimator(info, aimle_options(std::move(solver), changed));
}

std::unique_ptr<Estimator> build_imle(const EstimatorInfo& info, SolverSpec solver,
                                      const EstimatorOptions& options) {
  LayerOptions layer = imle_options(std::move(solver), options);
  if (options.symmetric_perturbation.value_or(false)) layer.difference = Difference::kCentral;
  return layer_estimator(info, std::move(layer));
}

std::unique_ptr<Estimator> build_imle_central(const EstimatorInfo& info, SolverSpec solver,
                                              const EstimatorOptions& options) {
  LayerOptions layer = imle_options(std::move(solver), options);
  layer.difference = Difference::kCentral;
  return layer_estimator(info, std::move(layer));
}

std::unique_ptr<Estimator> build_ste(const EstimatorInfo& info, SolverSpec solver,
                                     const EstimatorOptions& options) {
  return layer_estimator(info, with_common(ste(std::move(solver)), options));
}

std::unique_ptr<Estimator> build_dbb(const EstimatorInfo& info, SolverSpec solver,
                                     const EstimatorOptions& options) {
  return layer_estimator(
      info, with_common(dbb(std::move(solver), options.lambda.value_or(1.0)), options));
}

at::Tensor project_by_name(const at::Tensor& theta, const std::string& projection,
                           int64_t instance_dims, const MaybeTensor& mask) {
  return project(theta, parse_projection("project", projection), instance_dims, mask);
}

std::unique_ptr<Estimator> build_identity(const EstimatorInfo& info, SolverSpec solver,
                                          const EstimatorOptions& options) {
  return std::make_unique<Identity>(
      info, with_common(identity(std::move(solver)), options),
      parse_projection("estimator", options.projection.value_or("std")));
}

std::unique_ptr<Estimator> build_thresholds(const EstimatorInfo& info, SolverSpec solver,
                                            const EstimatorOptions& options) {
  LayerOptions layer = with_common(thresholds(std::move(solver)), options);
  layer.target =
      ThresholdTarget{.density = layer.noise->kind,
                      .order = ops::parse_word("estimator", "order",
                                               options.order.value_or("trapezoid"), ops::kOrders),
                      .max_weight = options.max_weight.value_or(ThresholdTarget{}.max_weight)};
  return layer_estimator(info, std::move(layer));
}

}  // namespace aimle
