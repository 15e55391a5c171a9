// The settings of an estimator: a noise, a solver, a target and a difference, combined.
//
//   AIMLE     adaptive target + central (or forward) difference
//   IMLE      fixed target + forward (or central) difference
//   DBB       fixed target + forward difference, no noise        (Vlastelica et al., ICLR 2020)
//   STE       straight through: the gradient of z is passed on   (Bengio et al., 2013)
//   Thresholds  no step: the noise's density at each entry's threshold         (thresholds.h)
//   Identity  straight through, no noise, after a projection     (Sahoo et al., ICLR 2023)
#pragma once

#include <cstdint>

#include "aimle/estimate/target.h"
#include "aimle/map/map.h"
#include "aimle/noise/noise.h"

namespace aimle {

/// kCentral:  [MAP(theta + lambda d + eps) - MAP(theta - lambda d + eps)] / (2 lambda)
/// kForward:  [z - MAP(theta - lambda d + eps)] / lambda, with the z of the forward pass
/// kStraightThrough: d itself; no solver call
/// kThresholds: each entry against its partner, weighted by the noise's density; no solver call
enum class Difference { kCentral, kForward, kStraightThrough, kThresholds };

/// kSamples: z [B, S, n]; the gradient of theta is the sum over samples of each sample's difference
/// under its own d. kMean: z [B, n], their mean; all samples step along the same d and the
/// differences are averaged.
enum class Output { kSamples, kMean };

struct PassSettings {
  NoiseSource noise;
  double noise_stddev = 0.0;  // of the noise before tempering, for AdaptiveTarget::Scale::kNoise
  /// The mean of the noise, which is subtracted if solutions vary in size: grid paths, and callers
  /// of the staged functions. 0: the noise is not centred.
  double noise_mean = 0.0;
  int64_t samples = 1;
  double theta_temperature = 1.0;
  double target_temperature = 1.0;
  Sense sense = Sense::kMax;  // whether theta is maximised, or a cost
  Output output = Output::kSamples;
  Difference difference = Difference::kCentral;
  Target target = FixedTarget{};

  /// Throws std::invalid_argument, naming the setting, its value and what is allowed.
  void validate() const;
};

/// Costs passed to a solver of grid paths, including noise and step; walls do not count.
struct Clipping {
  int64_t clipped = 0;  // below zero, clipped to zero
  int64_t costs = 0;    // all

  void add(const Clipping& other) {
    clipped += other.clipped;
    costs += other.costs;
  }
};

/// R, the rows of dy per example: one per sample, or one for all.
inline int64_t gradient_rows(const PassSettings& settings) {
  return settings.output == Output::kMean ? 1 : settings.samples;
}

/// True if every sample has its own step, by which its difference is divided.
inline bool steps_by_sample(const PassSettings& settings) {
  const auto* target = std::get_if<AdaptiveTarget>(&settings.target);
  return target != nullptr && target->scope == AdaptiveTarget::Scope::kSample &&
         gradient_rows(settings) > 1;
}

/// One call's inputs, contiguous: an example is one solver instance.
template <class T>
struct Examples {
  int64_t count = 0;
  int64_t n = 0;
  const T* theta = nullptr;    // [count, n]
  const bool* mask = nullptr;  // [count, n] or null
  const int64_t* k = nullptr;  // [count] or null
  InstanceData data;           // for solvers that take data
  Key key;
};

/// True if backward reads the z of the forward pass: thresholds, and the forward difference if both
/// passes use the same tempered noise, so that only the step makes a difference.
inline bool keeps_solution(const PassSettings& settings) {
  if (settings.difference == Difference::kThresholds) return true;
  return settings.difference == Difference::kForward &&
         settings.theta_temperature == settings.target_temperature;
}

}  // namespace aimle
