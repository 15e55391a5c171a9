// Scores with noise, and scores with noise after a step: the formulas of one entry.
//
//   x        = s theta + tau eps                  (forward)
//   x_L, x_R = (s theta +- lambda d) + tau eps    (backward)
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
  double theta = 1.0;   // -1 where theta is a cost
  double solver = 1.0;  // -1 where the solver minimises
};

inline Signs signs(Sense layer, Sense solver) {
  return {.theta = layer == Sense::kMin ? -1.0 : 1.0, .solver = solver == Sense::kMin ? -1.0 : 1.0};
}

template <class T>
AIMLE_HD T perturbed(T theta, float eps, T tau, Signs sign) {
  const T x = static_cast<T>(sign.theta) * theta + tau * static_cast<T>(eps);
  return static_cast<T>(sign.solver) * x;
}

/// `lambda` is signed: positive for x_L, negative for x_R.
template <class T>
AIMLE_HD T stepped(T theta, T d, double lambda, float eps, T tau, Signs sign) {
  const T step = static_cast<T>(lambda * static_cast<double>(d));
  const T moved = static_cast<T>(sign.theta) * theta + step;
  return static_cast<T>(sign.solver) * (moved + tau * static_cast<T>(eps));
}

}  // namespace aimle
