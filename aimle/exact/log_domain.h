// Positive numbers, directly or by their logarithms, for eliminations (tree_distribution.h), on the
// host and on the device.
#pragma once

#include <cmath>

#include "aimle/base/host_device.h"
#include "aimle/noise/exp.h"

namespace aimle::detail {

/// Up to this spread of logarithms, direct numbers and their products are far from underflow.
inline constexpr double kLinearSpread = 300;

/// Positive numbers, represented directly: except for `log`, the same bits on every device.
struct Linear {
  AIMLE_HD static double from_log(double x) { return exp_portable(x); }
  AIMLE_HD static double log(double a) { return std::log(a); }
  AIMLE_HD static double zero() { return 0; }
  AIMLE_HD static double add(double a, double b) { return a + b; }
  AIMLE_HD static double multiply(double a, double b) { return a * b; }
  AIMLE_HD static double divide(double a, double b) { return a / b; }
  AIMLE_HD static double ratio(double a, double b) { return a / b; }
};

/// Positive numbers, represented by their logarithms.
struct Logarithmic {
  AIMLE_HD static double from_log(double x) { return x; }
  AIMLE_HD static double log(double a) { return a; }
  AIMLE_HD static double zero() { return -HUGE_VAL; }
  AIMLE_HD static double add(double a, double b) {
    const double high = a < b ? b : a, low = a < b ? a : b;
    return low == zero() ? high : high + std::log1p(std::exp(low - high));
  }
  AIMLE_HD static double multiply(double a, double b) { return a + b; }
  AIMLE_HD static double divide(double a, double b) { return a - b; }
  AIMLE_HD static double ratio(double a, double b) { return std::exp(a - b); }
};

}  // namespace aimle::detail
