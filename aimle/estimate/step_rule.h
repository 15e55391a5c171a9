// The formulas behind a step size that both devices share.
#pragma once

#include <cmath>
#include <cstdint>

#include "aimle/base/host_device.h"
#include "aimle/estimate/target.h"
#include "aimle/map/solver.h"

namespace aimle {

/// The mean of a row, from its sum; zero of an empty one.
AIMLE_HD double mean_of(double sum, double entries) { return entries > 0.0 ? sum / entries : 0.0; }

/// The norm of a row minus its mean, from the sum of its squares; zero where only rounding is left.
AIMLE_HD double centred_norm(double squares, double mean, double entries) {
  constexpr double kRounding = 1e-12;
  const double norm = std::sqrt(squares);
  return norm <= kRounding * std::fabs(mean) * std::sqrt(entries) ? 0.0 : norm;
}

/// Do the norms leave out the mean? The same number added to all scores, or to the gradient of all
/// entries, changes no solution where all solutions have the same number of ones.
AIMLE_HD bool norms_are_centred(const AdaptiveTarget& target, const SolutionSize& size) {
  return target.scale != AdaptiveTarget::Scale::kTheta && size.fixed;
}

/// Is there more than one way to choose `ones` of `free` entries? True where `ones` is unknown.
AIMLE_HD bool has_choice(int64_t ones, int64_t free) {
  return ones < 0 ? free > 0 : 0 < ones && ones < free;
}

/// What alpha is a fraction of, given the norm of theta, the standard deviation of the tempered
/// noise and the number of entries that can move: see AdaptiveTarget::Scale.
AIMLE_HD double step_scale(AdaptiveTarget::Scale scale, double theta, double sigma,
                           double entries) {
  if (scale == AdaptiveTarget::Scale::kTheta) return theta;
  const double noise = sigma * std::sqrt(entries);
  if (scale == AdaptiveTarget::Scale::kNoise && noise > 0.0) return noise;
  const double floored = theta < noise ? noise : theta;  // a NaN stays
  return floored == 0.0 ? std::sqrt(entries) : floored;
}

}  // namespace aimle
