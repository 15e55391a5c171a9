// Scores with noise, and scores with noise after a step: the formulas of one entry.
//
//   x        = s theta + tau eps                  (forward)
//   x_L, x_R = (s theta +- lambda d) + tau eps    (backward)
//
// and, where the noise is centred, x - tau mu, mu being its mean.
//
// s is +1 where theta is maximised and -1 where it is a cost, so noise means the same in both
// senses. A solver that minimises is handed -x. Each operation is rounded once, in the type of
// theta, in the order written, except lambda d, which is formed in float64 so that neither factor
// over- or underflows alone.
#pragma once

#include "aimle/base/host_device.h"
#include "aimle/map/map.h"

namespace aimle {

/// How theta reaches the solver.
struct Signs {
  float theta = 1.0f;   // -1 where theta is a cost
  float solver = 1.0f;  // -1 where the solver minimises
};

inline Signs signs(Sense layer, Sense solver) {
  return {.theta = layer == Sense::kMin ? -1.0f : 1.0f,
          .solver = solver == Sense::kMin ? -1.0f : 1.0f};
}

/// s theta, after a step of `lambda` along d. `lambda` is signed: positive for x_L, negative for
/// x_R.
template <class T>
AIMLE_HD T moved(T theta, T d, double lambda, Signs sign) {
  const T step = static_cast<T>(lambda * static_cast<double>(d));
  return static_cast<T>(sign.theta) * theta + step;
}

/// What the solver is handed for a score that is final but for its noise.
template <class T>
AIMLE_HD T with_noise(T score, float eps, T tau, Signs sign) {
  return static_cast<T>(sign.solver) * (score + tau * static_cast<T>(eps));
}

template <class T>
AIMLE_HD T perturbed(T theta, float eps, T tau, Signs sign) {
  return with_noise(static_cast<T>(sign.theta) * theta, eps, tau, sign);
}

template <class T>
AIMLE_HD T stepped(T theta, T d, double lambda, float eps, T tau, Signs sign) {
  return with_noise(moved(theta, d, lambda, sign), eps, tau, sign);
}

/// What is subtracted from the scores that the solver is handed, where the noise is centred.
template <class T>
AIMLE_HD T centring(double mean, double tau, Signs sign) {
  return static_cast<T>(static_cast<double>(sign.solver) * tau * mean);
}

}  // namespace aimle
