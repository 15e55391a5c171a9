// Targets: how far the backward pass steps along the incoming gradient.
//
//   theta_L = theta + lambda d,   theta_R = theta - lambda d
//
// FixedTarget is IMLE's constant lambda (Niepert, Minervini, Franceschi, NeurIPS 2021).
// AdaptiveTarget is AIMLE's: lambda is a fraction alpha of ||theta|| / ||d||, and alpha is raised
// while too few entries of the solution change and lowered otherwise (controller.h). Its defaults
// need no tuning; AdaptiveTarget::paper() is Algorithm 1 of Minervini, Franceschi, Niepert, AAAI
// 2023. ThresholdTarget takes no step.
#pragma once

#include <variant>

#include "aimle/base/host_device.h"
#include "aimle/noise/noise.h"

namespace aimle {

struct FixedTarget {
  double lambda = 1.0;

  /// Throws std::invalid_argument unless lambda >= 0 and finite.
  void validate() const;
};

struct AdaptiveTarget {
  /// What the norms are taken over: one lambda per example (the paper), per sample, or per batch.
  enum class Scope { kExample, kSample, kBatch };
  /// The numerator of lambda = alpha mean_s scale / ||d_s||.
  /// kTheta: ||theta|| (the paper).
  /// kNoise: sigma sqrt(n), sigma the standard deviation of the tempered noise.
  /// kAuto: ||theta||, but at least sigma sqrt(n), so that theta = 0 also takes a step.
  /// For kNoise and kAuto the norms ignore what cannot change a solution (step_size.h).
  enum class Scale { kTheta, kNoise, kAuto };
  /// kAdditive: alpha +- step (the paper). kMultiplicative: alpha * factor or alpha / factor, which
  /// needs alpha_min > 0.
  enum class Rule { kAdditive, kMultiplicative };

  /// For target_norm: chosen by measuring what the largest step changes (controller.h).
  static constexpr double kAutomatic = -1.0;

  double step = 1e-3;               // of the additive rule
  double target_norm = kAutomatic;  // c, the target number of changed entries
  double decay = 0.9;
  Scope scope = Scope::kSample;
  Scale scale = Scale::kAuto;
  Rule rule = Rule::kMultiplicative;
  double factor = 1.02;
  double alpha_min = 1e-6;
  double alpha_max = 4.0;  // 0: no upper bound; layers over costs: kLargestAlphaOfCosts
  double momentum = 0.0;   // of the additive rule with a given target_norm
  /// The authors' code instead of the paper: divides by lambda / sqrt(samples) after stepping by
  /// lambda, raises alpha only while gbar < c, not at gbar = c, and counts samples without a
  /// gradient as unchanged.
  bool reference = false;

  /// The default of alpha_max for the forward difference on costs. A long forward step tends to z -
  /// MAP(-d), which still depends on theta; a long central one does not.
  static constexpr double kLargestAlphaOfCosts = 16.0;

  /// Algorithm 1: alpha starts at 0, moves by 1e-3 and has no upper bound; c = 1.
  static AdaptiveTarget paper() {
    return {.target_norm = 1.0,
            .scope = Scope::kExample,
            .scale = Scale::kTheta,
            .rule = Rule::kAdditive,
            .alpha_min = 0.0,
            .alpha_max = 0.0};
  }

  AIMLE_HD bool is_automatic() const { return target_norm < 0.0; }
  /// False if alpha never changes.
  AIMLE_HD bool moves() const {
    return alpha_min != alpha_max && (rule == Rule::kMultiplicative || step > 0.0);
  }
  /// The default start of alpha.
  double start() const { return alpha_max > 0.0 ? alpha_max : alpha_min; }

  void validate() const;
};

/// No step: weights from the noise's density at each entry's threshold (thresholds.h). Used with
/// Difference::kThresholds.
struct ThresholdTarget {
  enum class Order { kFirst, kTrapezoid };

  /// kGumbel, kLogistic or kNormal; also used if the solution is noise-free (evaluation).
  NoiseKind density = NoiseKind::kGumbel;
  Order order = Order::kTrapezoid;
  double max_weight = 20.0;

  void validate() const;
};

using Target = std::variant<FixedTarget, AdaptiveTarget, ThresholdTarget>;

/// Samples whose ||d|| is below this share of the example's largest are left out of the mean of
/// ratios: one vanishing gradient would make lambda too large for all.
inline constexpr double kSmallGradient = 1e-6;

}  // namespace aimle
