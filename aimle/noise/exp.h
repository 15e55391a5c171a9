// exp and expm1 in float64, the same bits on every host and device.
//
// Under the rules of math.h: prescribed operations only, no branches, no libm, no contraction. With
// k = round(x / log 2) and r = x - k log 2, |r| <= log(2) / 2,
//
//   e^x = 2^k (1 + m),   m = e^r - 1 = r + r^2 Q(r),   Q a polynomial of degree 9
//
// (scripts/fit_weight_polynomials.py). Both are within 1e-15 of the exact value, relatively, for
// |x| <= kMaxExponent; beyond it they stay at that end, so results are positive, normal numbers.
#pragma once

#include <cstdint>

#include "aimle/noise/math.h"

namespace aimle {

AIMLE_HD uint64_t double_bits(double value) { return __builtin_bit_cast(uint64_t, value); }

AIMLE_HD double double_from_bits(uint64_t bits) { return __builtin_bit_cast(double, bits); }

/// All ones if true, else zero.
AIMLE_HD uint64_t mask_if(bool condition) { return uint64_t{0} - static_cast<uint64_t>(condition); }

/// `yes` where mask is all ones, `no` where it is zero.
AIMLE_HD double select(uint64_t mask, double yes, double no) {
  return double_from_bits((double_bits(yes) & mask) | (double_bits(no) & ~mask));
}

inline constexpr double kMaxExponent = 700.0;

/// e^x = scale (1 + m).
struct ExpParts {
  double scale;
  double m;
};

AIMLE_HD ExpParts exp_parts(double x) {
  constexpr double kPerLog2 = 0x1.71547652b82fep+0;
  constexpr double kLog2High = 0x1.62e42fefa3000p-1, kLog2Low = 0x1.3de6af278ece6p-42;
  constexpr double kRound = 0x1.8p+52;  // adding it leaves the nearest integer in the low bits
  x = x < -kMaxExponent ? -kMaxExponent : x;
  x = x > kMaxExponent ? kMaxExponent : x;
  const double shifted = x * kPerLog2 + kRound;
  const double k = shifted - kRound;
  const double r = (x - k * kLog2High) - k * kLog2Low;

  // In pairs of coefficients (Estrin's scheme), which shortens the chain of dependent operations.
  const double r2 = r * r, r4 = r2 * r2;
  const double q01 = 0x1.5555555555556p-3 * r + 0x1.0000000000001p-1;
  const double q23 = 0x1.11111111109b3p-7 * r + 0x1.5555555553d63p-5;
  const double q45 = 0x1.a01a01a7c41d5p-13 * r + 0x1.6c16c1788bd90p-10;
  const double q67 = 0x1.71de0dae63bb3p-19 * r + 0x1.a019b90d2ae7ap-16;
  const double q89 = 0x1.af38a9b0ec855p-26 * r + 0x1.289185613a3d6p-22;
  const double q = (q01 + q23 * r2) + ((q45 + q67 * r2) + q89 * r4) * r4;
  return {double_from_bits((double_bits(shifted) << 52) + 0x3ff0000000000000u), r + r2 * q};
}

AIMLE_HD double exp_portable(double x) {
  const ExpParts e = exp_parts(x);
  return e.scale + e.scale * e.m;
}

/// e^x - 1, accurate near 0 too.
AIMLE_HD double expm1_portable(double x) {
  const ExpParts e = exp_parts(x);
  return e.scale * e.m + (e.scale - 1.0);
}

}  // namespace aimle
