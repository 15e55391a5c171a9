// From the difference of two solutions to the gradient, shared by both devices: what a sample adds
// to the sum of its example, the divisor of the sum, and the counts.
//
//   dtheta = sign sum_s (z_left - z_right)_s / (sides lambda samples / root)
//
// If every sample has its own lambda, its difference is divided by that when it is added.
#pragma once

#include <cmath>
#include <cstdint>
#include <variant>

#include "aimle/base/host_device.h"
#include "aimle/estimate/controller.h"
#include "aimle/estimate/settings.h"

namespace aimle {

struct DivideRule {
  int64_t samples = 1;
  int64_t gradients = 1;    // rows of the gradient per example
  bool own_lambda = false;  // whether every sample is divided by its own step size
  double sides = 1.0;       // 2 for the central difference
  double root = 1.0;        // sqrt(samples) if the authors' code divides by it
  double averaged = 1.0;    // samples, if their differences are averaged
  double sign = 1.0;        // of theta in the scores

  /// The gradient row, hence the step size, of a sample.
  AIMLE_HD int64_t row(int64_t sample) const { return gradients == 1 ? 0 : sample; }

  /// The factor on the differences of a sample with its own step. Without a step both solutions are
  /// the same.
  AIMLE_HD static double factor(double step) { return step > 0.0 ? 1.0 / step : 0.0; }

  /// `sum` after adding a sample, with `factor` for its step; NaN after a step that is NaN,
  /// whatever the solver returned for it.
  AIMLE_HD double added(double sum, double change, double step, double factor) const {
    if (step != step) return step;
    return own_lambda ? scaled(sum, change, factor) : sum + change;
  }
  AIMLE_HD static double scaled(double sum, double change, double factor) {
    return sum + change * factor;
  }

  /// The divisor of the sum over an example's samples; `lambda` is the example's.
  AIMLE_HD double divisor(double lambda) const {
    double divisor = sides * lambda;
    if (root != 1.0) divisor /= root;
    return divisor * averaged;
  }

  /// The gradient of an entry. At lambda = 0 both solutions are the same; NaN is propagated.
  AIMLE_HD double gradient(double sum, double divisor, bool free) const {
    return !free ? 0.0 : divisor > 0.0 ? quotient(sign, sum, divisor) : sum * 0.0;
  }

  /// The same for a divisor > 0 and an entry that is free.
  AIMLE_HD static double quotient(double sign, double sum, double divisor) {
    return sign * sum / divisor;
  }
};

inline DivideRule divide_rule(const PassSettings& settings) {
  const auto* target = std::get_if<AdaptiveTarget>(&settings.target);
  const auto samples = static_cast<double>(settings.samples);
  return {.samples = settings.samples,
          .gradients = gradient_rows(settings),
          .own_lambda = steps_by_sample(settings),
          .sides = settings.difference == Difference::kCentral ? 2.0 : 1.0,
          .root = target != nullptr && target->reference ? std::sqrt(samples) : 1.0,
          .averaged = settings.output == Output::kMean ? samples : 1.0,
          .sign = settings.sense == Sense::kMin ? -1.0 : 1.0};
}

/// Counts a sample that has a gradient and a step: `nonzeros` of its entries changed, fewer than 0
/// if a solution is missing.
AIMLE_HD void count_change(int64_t nonzeros, Changes& seen) {
  if (nonzeros < 0) return;
  seen.nonzeros += nonzeros;
  seen.changed += nonzeros > 0;
  seen.samples += 1;
}

/// Counts an entry of the gradient.
AIMLE_HD void count_entry(double gradient, bool free, Changes& seen) {
  seen.zeros += free && gradient == 0.0;
  seen.entries += free;
}

}  // namespace aimle
