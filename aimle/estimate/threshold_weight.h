// The weights of thresholds (thresholds.h): p(u), p/F and p/(1 - F) of the noise at a threshold.
//
//   density    kFirst                  kTrapezoid, j in: p/(1 - F)    kTrapezoid, j out: p/F
//   Gumbel     y e^-y,  y = e^-u       y / (e^y - 1)                  y
//   Logistic   F (1 - F)               F = 1 / (1 + e^-u)             1 - F
//   Normal     phi(u)                  h(u) = phi(u) / Phi(-u)        h(-u)
//
// The same bits on every host and device: prescribed operations in float64, no branches, no libm,
// no contraction (noise/exp.h). Within 1e-12 of the exact value, relatively, while that is above
// 1e-300 and |u| <= 700; finite and not negative for every finite u. For the hazard rate h of the
// normal, Mills' ratio 1/h(a) = M(a) is taken from (1 + a) M(a), a polynomial of degree 18 in
// (a - 4) / (a + 4) on all of a >= 0 (the substitution of Schonfelder, Mathematics of Computation
// 32, 1978).
#pragma once

#include <cstdint>

#include "aimle/estimate/target.h"
#include "aimle/noise/exp.h"

namespace aimle {

/// y / (e^y - 1), the weight of an entry that is in.
AIMLE_HD double gumbel_in_weight(double y) {
  const double bounded = y < kMaxExponent ? y : kMaxExponent;
  return bounded / expm1_portable(bounded);
}

AIMLE_HD double gumbel_weight(ThresholdTarget::Order order, double u, bool is_in) {
  const double y = exp_portable(-u);
  if (order == ThresholdTarget::Order::kTrapezoid) {
    return select(mask_if(is_in), gumbel_in_weight(y), y);
  }
  const double bounded = y < kMaxExponent ? y : kMaxExponent;
  return bounded * exp_portable(-bounded);
}

AIMLE_HD double logistic_weight(ThresholdTarget::Order order, double u, bool is_in) {
  const double x = select(mask_if(is_in), u, -u);
  const double e = exp_portable(x < 0.0 ? x : -x);
  const double large = 1.0 / (1.0 + e);
  if (order == ThresholdTarget::Order::kFirst) return e * large * large;
  return select(mask_if(x < 0.0), e * large, large);
}

/// (1 + a) Phi(-a) / phi(a) for a >= 0.
AIMLE_HD double scaled_mills(double a) {
  const double t = (a - 4.0) / (a + 4.0);
  // In pairs of coefficients (Estrin's scheme), which shortens the chain of dependent operations.
  const double t2 = t * t, t4 = t2 * t2, t8 = t4 * t4;
  const double g0 = -0x1.f06f3d0b9f9d9p-3 * t + 0x1.2eea40b9abcabp+0;
  const double g2 = 0x1.25a4eb03b6e74p-4 * t + 0x1.1f7901bf1507cp-5;
  const double g4 = 0x1.704e2089dc4b7p-5 * t - 0x1.4a947b692dd09p-4;
  const double g6 = -0x1.775d1670f6c52p-11 * t - 0x1.9ae19bc262a3bp-7;
  const double g8 = -0x1.f06af170462f4p-13 * t + 0x1.c89c6c64d2182p-10;
  const double g10 = 0x1.bf142f069a694p-15 * t - 0x1.cdad98334829dp-13;
  const double g12 = -0x1.22e0a1e89884bp-17 * t + 0x1.1d0061e0cbacfp-15;
  const double g14 = 0x1.296d09b7a1f4ep-20 * t - 0x1.a3f220424585bp-18;
  const double g16 = -0x1.674baade46cf6p-24 * t + 0x1.2739a33592464p-20;
  const double g18 = -0x1.000497104c327p-23;
  const double low = (g0 + g2 * t2) + (g4 + g6 * t2) * t4;
  const double middle = (g8 + g10 * t2) + (g12 + g14 * t2) * t4;
  return low + (middle + (g16 + g18 * t2) * t8) * t8;
}

AIMLE_HD double normal_density(double u) {
  constexpr double kInverseRoot2Pi = 0x1.9884533d43651p-2;
  return kInverseRoot2Pi * exp_portable(-0.5 * (u * u));
}

// Far out, phi(u) / Phi(u) is taken as phi(u): from 9 on, Phi(u) > 1 - 2e-19 rounds to 1. From 37.5
// on, phi is constant, because exp_portable stays at e^-700.
inline constexpr double kNormalFar = 9.0;
inline constexpr double kNormalLast = 37.5;

AIMLE_HD double normal_weight(ThresholdTarget::Order order, double u, bool is_in) {
  const double phi = normal_density(u);
  if (order == ThresholdTarget::Order::kFirst) return phi;
  const double x = select(mask_if(is_in), u, -u);
  const uint64_t negative = mask_if(x < 0.0);
  const double a = x < 0.0 ? -x : x;
  const double g = scaled_mills(a);
  // phi / Phi(a) = phi / (1 - phi M(a)) below zero.
  const double top = select(negative, phi * (1.0 + a), 1.0 + a);
  const double weight = top / select(negative, (1.0 + a) - phi * g, g);
  return select(mask_if(x <= -kNormalFar), phi, weight);
}

/// The weight of an entry at u = (t - theta) / tau, before the cap and the factor 1/2.
AIMLE_HD double threshold_weight(NoiseKind density, ThresholdTarget::Order order, double u,
                                 bool is_in) {
  switch (density) {
    case NoiseKind::kGumbel:
      return gumbel_weight(order, u, is_in);
    case NoiseKind::kLogistic:
      return logistic_weight(order, u, is_in);
    default:
      return normal_weight(order, u, is_in);
  }
}

}  // namespace aimle
