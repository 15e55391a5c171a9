#include "aimle/estimate/settings.h"

#include <cmath>

#include "aimle/base/check.h"

namespace aimle {
namespace {

bool finite_at_least(double value, double least) { return std::isfinite(value) && value >= least; }

}  // namespace

void FixedTarget::validate() const {
  AIMLE_CHECK(finite_at_least(lambda, 0.0),
              "[aimle::FixedTarget] expected a finite lambda_ >= 0 but got ", lambda);
}

void AdaptiveTarget::validate() const {
  AIMLE_CHECK(finite_at_least(step, 0.0),
              "[aimle::AdaptiveTarget] expected a finite step >= 0 but got ", step);
  AIMLE_CHECK(target_norm == kAutomatic || finite_at_least(target_norm, 0.0),
              "[aimle::AdaptiveTarget] expected a finite target_norm >= 0, or automatic, but got ",
              target_norm);
  AIMLE_CHECK(!is_automatic() || (alpha_max != 0.0 && !std::isinf(alpha_max)),
              "[aimle::AdaptiveTarget] an automatic target_norm needs an upper bound of alpha: "
              "expected a finite alpha_range[1] but got none");
  AIMLE_CHECK(decay >= 0.0 && decay < 1.0,
              "[aimle::AdaptiveTarget] expected 0 <= decay < 1 but got ", decay);
  AIMLE_CHECK(std::isfinite(factor) && factor > 1.0,
              "[aimle::AdaptiveTarget] expected a finite factor > 1 but got ", factor);
  AIMLE_CHECK(finite_at_least(alpha_min, 0.0) && (alpha_max == 0.0 || alpha_max >= alpha_min),
              "[aimle::AdaptiveTarget] expected 0 <= alpha_range[0] <= alpha_range[1] but got (",
              alpha_min, ", ", alpha_max, ")");
  AIMLE_CHECK(rule == Rule::kAdditive || alpha_min > 0.0,
              "[aimle::AdaptiveTarget] expected alpha_range[0] > 0 for the multiplicative rule but "
              "got ",
              alpha_min);
  AIMLE_CHECK(momentum >= 0.0 && momentum < 1.0,
              "[aimle::AdaptiveTarget] expected 0 <= momentum < 1 but got ", momentum);
  AIMLE_CHECK(
      !is_automatic() || momentum == 0.0,
      "[aimle::AdaptiveTarget] momentum needs a target_norm: expected momentum = 0 but got ",
      momentum);
}

void ThresholdTarget::validate() const {
  AIMLE_CHECK(
      density == NoiseKind::kGumbel || density == NoiseKind::kLogistic ||
          density == NoiseKind::kNormal,
      "[aimle::thresholds] expected a noise with a density, gumbel, logistic or normal, but "
      "got ",
      name(density));
  AIMLE_CHECK(max_weight > 0.0, "[aimle::thresholds] expected max_weight > 0 but got ", max_weight);
}

void PassSettings::validate() const {
  AIMLE_CHECK(samples >= 1, "[aimle] expected nb_samples >= 1 but got ", samples);
  AIMLE_CHECK(finite_at_least(theta_temperature, 0.0),
              "[aimle] expected a finite theta_noise_temperature >= 0 but got ", theta_temperature);
  AIMLE_CHECK(finite_at_least(target_temperature, 0.0),
              "[aimle] expected a finite target_noise_temperature >= 0 but got ",
              target_temperature);
  std::visit([](const auto& chosen) { chosen.validate(); }, target);
  const auto* thresholds = std::get_if<ThresholdTarget>(&target);
  AIMLE_CHECK(
      (thresholds != nullptr) == (difference == Difference::kThresholds),
      "[aimle] the difference \"thresholds\" and the target \"thresholds\" must be used together");
  if (thresholds != nullptr) {
    AIMLE_CHECK(theta_temperature > 0.0,
                "[aimle::thresholds] expected theta_noise_temperature > 0 but got ",
                theta_temperature);
    AIMLE_CHECK(noise.kind == NoiseKind::kNone || noise.kind == thresholds->density,
                "[aimle::thresholds] expected the density of the noise, ", name(noise.kind),
                ", but got ", name(thresholds->density));
  }
  const auto* adaptive = std::get_if<AdaptiveTarget>(&target);
  AIMLE_CHECK(
      adaptive == nullptr || adaptive->scale != AdaptiveTarget::Scale::kNoise || noise_stddev > 0.0,
      "[aimle] scale=\"noise\" needs a noise, but the noise is None");
}

}  // namespace aimle
