// Independent coin flips, named by the settings of Bernoulli.
//
//   A(x) = sum_j log(1 + exp x_j)     mu_j = sigmoid(x_j)     Cov(z) v = mu (1 - mu) v
//
// O(n). Entry j of a sample is on if uniform number j is below mu_j. Nothing overflows, and 1 - mu
// is calculated as sigmoid(-x). Masked entries and -inf are never on; NaN and +inf are kNaN.
#pragma once

#include <cmath>

#include "aimle/base/host_device.h"
#include "aimle/exact/distribution.h"
#include "aimle/map/bernoulli.h"

namespace aimle {

/// The contribution of one entry to the distribution.
struct CoinFlip {
  double on;     // mu
  double off;    // 1 - mu, to full accuracy
  double log_z;  // log(1 + exp x)
};

/// x < inf; -inf is never on.
AIMLE_HD CoinFlip coin_flip(double x) {
  const double e = std::exp(x < 0 ? x : -x);  // at most 1
  const double small = e / (1 + e), large = 1 / (1 + e);
  return {.on = x < 0 ? small : large,
          .off = x < 0 ? large : small,
          .log_z = (x < 0 ? 0.0 : x) + std::log1p(e)};
}

inline double evaluate_work_ns(const Bernoulli& solver) {
  return 20.0 + 20.0 * static_cast<double>(solver.n);
}
inline double sample_work_ns(const Bernoulli& solver) {
  return 20.0 + 12.0 * static_cast<double>(solver.n);
}

AIMLE_DECLARE_DISTRIBUTION(Bernoulli)

}  // namespace aimle
