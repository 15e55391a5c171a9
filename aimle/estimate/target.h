// Targets: how far the backward pass steps along the incoming gradient.
//
//   theta_L = theta + lambda d,   theta_R = theta - lambda d
//
// FixedTarget is IMLE's constant lambda (Niepert, Minervini, Franceschi, NeurIPS 2021).
// AdaptiveTarget is AIMLE's (Minervini, Franceschi, Niepert, AAAI 2023, Algorithm 1): lambda is a
// fraction alpha of ||theta|| / ||d||, and alpha is raised while too few entries of the solution
// change and lowered otherwise (controller.h). ThresholdTarget takes no step.
#pragma once

#include <cstdint>
#include <variant>

#include "aimle/noise/noise.h"

namespace aimle {

struct FixedTarget {
  double lambda = 1.0;

  /// Throws std::invalid_argument unless lambda >= 0 and finite.
  void validate() const;
};

struct AdaptiveTarget {
  /// Whose norms make the ratio: one lambda per example (the paper), per sample, or per batch.
  enum class Scope { kExample, kSample, kBatch };
  /// kTheta: lambda = alpha mean_s ||theta|| / ||d_s|| (the paper).
  /// kNoise: lambda = alpha sigma sqrt(n) mean_s 1 / ||d_s||, sigma the standard deviation of the
  /// tempered noise; works at theta = 0.
  enum class Scale { kTheta, kNoise };
  /// kAdditive: alpha +- step (the paper). kMultiplicative: alpha * factor or alpha / factor, which
  /// needs alpha_min > 0; [1, 1000] is a good range.
  enum class Rule { kAdditive, kMultiplicative };

  double step = 1e-3;
  double target_norm = 1.0;
  double decay = 0.9;
  Scope scope = Scope::kExample;
  Scale scale = Scale::kTheta;
  Rule rule = Rule::kAdditive;
  double factor = 1.1;
  double alpha_min = 0.0;
  double alpha_max = 0.0;  // 0: no upper bound
  double momentum = 0.0;
  /// What the authors' code does instead of the paper: divides by lambda / sqrt(samples) after
  /// stepping by lambda, raises alpha only while gbar < c, not at gbar = c, and counts samples
  /// without a gradient as unchanged.
  bool reference = false;

  void validate() const;
};

/// No step at all: weights by the noise's density at each entry's threshold (thresholds.h). Goes
/// with Difference::kThresholds.
struct ThresholdTarget {
  enum class Order { kFirst, kTrapezoid };

  /// kGumbel, kLogistic or kNormal; also used where the solution is noise-free (evaluation).
  NoiseKind density = NoiseKind::kGumbel;
  Order order = Order::kTrapezoid;
  double max_weight = 20.0;

  void validate() const;
};

using Target = std::variant<FixedTarget, AdaptiveTarget, ThresholdTarget>;

/// Samples whose ||d|| is below this share of the example's largest are left out of the mean of
/// ratios: one vanishing gradient would blow lambda up for all.
inline constexpr double kSmallGradient = 1e-6;

}  // namespace aimle
