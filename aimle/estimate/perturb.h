// Scores with noise, and scores with noise after a step: the formulas for one entry.
//
//   x        = s theta + tau eps                  (forward)
//   x_L, x_R = (s theta +- lambda d) + tau eps    (backward)
//
// and, if the noise is centred, x - tau mu with its mean mu.
//
// s is +1 if theta is maximised and -1 if it is a cost, so noise has the same effect in both
// senses. A solver that minimises gets -x. Each operation is rounded once, in the type of theta, in
// the order written, except lambda d, which is computed in float64 so that neither factor over- or
// underflows alone.
#pragma once

#include "aimle/base/host_device.h"
#include "aimle/map/map.h"

namespace aimle {

/// How theta is passed to the solver.
struct Signs {
  float theta = 1.0f;   // -1 if theta is a cost
  float solver = 1.0f;  // -1 if the solver minimises
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

/// The solver's input for a score that is final except for its noise.
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

/// What is subtracted from the solver's input if the noise is centred.
template <class T>
AIMLE_HD T centring(double mean, double tau, Signs sign) {
  return static_cast<T>(static_cast<double>(sign.solver) * tau * mean);
}

}  // namespace aimle
