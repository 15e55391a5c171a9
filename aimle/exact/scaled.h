// Positive numbers of any size: a mantissa in [1, 2) and a separate exponent of two, so that sums
// of products keep the relative precision of float64 whatever their logarithms are. On the host and
// on the device.
#pragma once

#include <cmath>
#include <cstdint>

#include "aimle/base/host_device.h"

namespace aimle::detail {

/// mantissa * 2^exponent; the exponent is a whole number, or -inf for zero.
struct Scaled {
  double mantissa = 0;
  double exponent = -HUGE_VAL;

  AIMLE_HD bool is_zero() const { return mantissa == 0; }
};

inline constexpr double kLog2 = 0x1.62e42fefa39efp-1;

/// 2^d of a whole number d <= 0, or 0 if that is below the smallest normal number.
AIMLE_HD double power_of_two(double d) {
  if (!(d >= -1022)) return 0;
  return __builtin_bit_cast(double, static_cast<uint64_t>(static_cast<int64_t>(d) + 1023) << 52);
}

/// value * 2^exponent for a normal value above zero.
AIMLE_HD Scaled scaled(double value, double exponent) {
  const auto bits = __builtin_bit_cast(uint64_t, value);
  const auto shift = static_cast<double>(static_cast<int64_t>(bits >> 52) - 1023);
  const uint64_t mantissa = (bits & 0x000fffffffffffffu) | 0x3ff0000000000000u;
  return {__builtin_bit_cast(double, mantissa), exponent + shift};
}

/// a exp(x); zero if a or exp(x) is.
AIMLE_HD Scaled times_exp(const Scaled& a, double x) {
  constexpr double kHigh = 0x1.62e42feep-1, kLow = 0x1.a39ef35793c76p-33;  // of log 2
  if (a.is_zero() || x == -HUGE_VAL) return {};
  const double k = std::rint(x * (1 / kLog2));
  double rest = (x - k * kHigh) - k * kLow;
  // For scores so large that k is not exact, the remainder is meaningless.
  if (!(rest > -1 && rest < 1)) rest = 0;
  return scaled(a.mantissa * std::exp(rest), a.exponent + k);
}

/// The sum of three numbers, each of which is replaced by its share of the sum; zeros have none.
AIMLE_HD Scaled add_up(const Scaled (&a)[3], double (&share)[3]) {
  const double low = a[0].exponent > a[1].exponent ? a[0].exponent : a[1].exponent;
  const double exponent = low > a[2].exponent ? low : a[2].exponent;
  share[0] = share[1] = share[2] = 0;
  if (exponent == -HUGE_VAL) return {};
  double sum = 0;
  for (int m = 0; m < 3; ++m) {
    share[m] = a[m].mantissa * power_of_two(a[m].exponent - exponent);
    sum += share[m];
  }
  for (double& part : share) part /= sum;
  return scaled(sum, exponent);
}

AIMLE_HD double log(const Scaled& a) { return a.exponent * kLog2 + std::log(a.mantissa); }

}  // namespace aimle::detail
