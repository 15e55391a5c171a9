// The controller: moves alpha so that on average target_norm entries of a solution change.
//
//   count = mean number of non-zeros of z_L - z_R over the samples that had a gradient
//   gbar <- decay gbar + (1 - decay) count
//   alpha <- max(0, alpha + step) if gbar <= target_norm else max(0, alpha - step)     (additive)
//   alpha <- alpha factor         if gbar <= target_norm else alpha / factor      (multiplicative)
//
// and alpha stays within [alpha_min, alpha_max]. A pass in which no sample had a finite, non-zero
// gradient leaves the state alone.
#pragma once

#include <cstdint>

#include "aimle/base/host_device.h"
#include "aimle/estimate/target.h"

namespace aimle {

/// What the controller remembers between passes; buffers of the layer.
struct ControllerState {
  double alpha = 0.0;
  double gbar = 1.0;
  int64_t updates = 0;
  double velocity = 0.0;  // used with momentum only
};

/// What one backward pass saw, as integers, so that no order of summation matters.
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

AIMLE_HD void update(const AdaptiveTarget& target, const Changes& seen, ControllerState& state) {
  if (seen.samples == 0) return;
  const double count = static_cast<double>(seen.nonzeros) / static_cast<double>(seen.samples);
  const double gbar = target.decay * state.gbar + (1.0 - target.decay) * count;
  const bool raise = target.reference ? gbar < target.target_norm : gbar <= target.target_norm;
  double alpha = state.alpha;
  if (target.rule == AdaptiveTarget::Rule::kAdditive) {
    state.velocity = target.momentum * state.velocity + (raise ? target.step : -target.step);
    alpha += state.velocity;
  } else {
    alpha = raise ? alpha * target.factor : alpha / target.factor;
  }
  if (alpha < target.alpha_min) alpha = target.alpha_min;
  if (target.alpha_max > 0.0 && alpha > target.alpha_max) alpha = target.alpha_max;
  state.alpha = alpha;
  state.gbar = gbar;
  state.updates += 1;
}

}  // namespace aimle
