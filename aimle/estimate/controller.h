// The controller: adjusts alpha so that on average c entries of a solution change.
//
//   count = mean number of non-zeros of z_L - z_R over the samples that had a gradient
//   gbar <- decay gbar + (1 - decay) count
//   alpha <- alpha factor  if gbar <= c  else  alpha / factor                     (multiplicative)
//   alpha <- alpha + step  if gbar <= c  else  alpha - step                             (additive)
//
// with alpha clamped to [alpha_min, alpha_max]. c is the target_norm or, if that is automatic, half
// of what the largest step changes, divided by the square root of the number of samples:
//
//   c = reach / (2 sqrt(S)),   reach = moving average of the count at alpha = alpha_max
//
// Every kReachPeriod-th pass steps with alpha_max instead of alpha to measure the reach, which
// needs no additional solve. A pass in which no sample has a finite, non-zero gradient does not
// change the state.
#pragma once

#include <cmath>
#include <cstdint>

#include "aimle/base/host_device.h"
#include "aimle/estimate/target.h"

namespace aimle {

/// The state between passes; buffers of the layer.
struct ControllerState {
  double alpha = 0.0;
  double gbar = 1.0;
  int64_t updates = 0;
  double memory = 0.0;  // the reach if c is automatic, else the velocity of alpha with momentum
};

inline constexpr int64_t kReachPeriod = 50;

/// Whether this pass steps with alpha_max to measure the reach.
AIMLE_HD bool measures_reach(const AdaptiveTarget& target, int64_t updates) {
  return target.is_automatic() && updates % kReachPeriod == 0;
}

/// The alpha of the next step. A layer that does not `adapt` keeps its own.
AIMLE_HD double step_alpha(const AdaptiveTarget& target, double alpha, int64_t updates,
                           bool adapt) {
  return adapt && measures_reach(target, updates) ? target.alpha_max : alpha;
}

/// Counts of one backward pass, as integers, so that the order of summation does not matter.
struct Changes {
  int64_t nonzeros = 0;  // non-zeros of z_L - z_R, summed over samples
  int64_t samples = 0;   // samples that had a finite, non-zero gradient
  int64_t changed = 0;   // samples in which anything changed
  int64_t zeros = 0;     // unmasked entries of the gradient of theta that are zero
  int64_t entries = 0;   // unmasked entries of the gradient of theta

  AIMLE_HD void add(const Changes& other) {
    nonzeros += other.nonzeros;
    samples += other.samples;
    changed += other.changed;
    zeros += other.zeros;
    entries += other.entries;
  }
};

/// Adds a measurement at alpha_max: the mean of the first ten, a moving average from then on.
AIMLE_HD void update_reach(double count, ControllerState& state) {
  const int64_t before = state.updates / kReachPeriod;
  const double weight = before < 10 ? 1.0 / static_cast<double>(before + 1) : 0.1;
  state.memory += weight * (count - state.memory);
  if (state.updates == 0) state.gbar = count;
}

/// c, the target number of changed entries with this many samples.
AIMLE_HD double changes_wanted(const AdaptiveTarget& target, int64_t samples,
                               const ControllerState& state) {
  if (!target.is_automatic()) return target.target_norm;
  return state.memory / (2.0 * std::sqrt(static_cast<double>(samples)));
}

/// Updates alpha after a pass; `samples` is the layer's S.
AIMLE_HD void update_alpha(const AdaptiveTarget& target, int64_t samples, const Changes& seen,
                           ControllerState& state) {
  if (seen.samples == 0) return;
  const double count = static_cast<double>(seen.nonzeros) / static_cast<double>(seen.samples);
  if (measures_reach(target, state.updates)) {
    update_reach(count, state);
    state.updates += 1;
    return;
  }
  const double gbar = target.decay * state.gbar + (1.0 - target.decay) * count;
  const double wanted = changes_wanted(target, samples, state);
  const bool raise = target.reference ? gbar < wanted : gbar <= wanted;
  double alpha = state.alpha;
  if (target.rule == AdaptiveTarget::Rule::kMultiplicative) {
    alpha = raise ? alpha * target.factor : alpha / target.factor;
  } else if (target.is_automatic()) {
    alpha += raise ? target.step : -target.step;
  } else {
    state.memory = target.momentum * state.memory + (raise ? target.step : -target.step);
    alpha += state.memory;
  }
  if (alpha < target.alpha_min) alpha = target.alpha_min;
  if (target.alpha_max > 0.0 && alpha > target.alpha_max) alpha = target.alpha_max;
  state.alpha = alpha;
  state.gbar = gbar;
  state.updates += 1;
}

}  // namespace aimle
