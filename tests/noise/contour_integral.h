// The distribution of Y = sum_{i=1..s} Gamma(1/k, 1/i) by numerical inversion of its transform, as
// an oracle that shares nothing with gamma_mixture.cpp.
//
//   M(z) = E exp(-z Y) = prod_i (1 + z/i)^(-1/k)
//   F(y)     =  1/(2 pi i) integral exp(z y) M(z) / z dz, passing right of 0
//   1 - F(y) = -1/(2 pi i) integral exp(z y) M(z) / z dz, passing between -1 and 0
// M's singularities lie on (-inf, -1]. The path is the parabola z = end + m (1 + i u)^2 around
// them, through the saddle point or near it, where the integrand is about as large as the result:
// so both tails come with about ten digits. The trapezoidal rule converges geometrically on it
// (Weideman & Trefethen, "Parabolic and hyperbolic contours for computing the Bromwich integral",
// 2007).
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>

namespace aimle {

class ContourIntegral {
 public:
  ContourIntegral(int64_t k, int64_t s) : k_(static_cast<double>(k)), s_(s) {}

  double lower(double y) const { return integrate(y, 0, saddle(y, 0)); }

  double upper(double y) const {
    const double below = lower(y);
    return below < 0.99 ? 1 - below : -integrate(y, -1, near_saddle(y));
  }

  double density(double y) const {
    return lower(y) < 0.99 ? integrate(y, 0, saddle(y, 0), true)
                           : integrate(y, -1, near_saddle(y), true);
  }

 private:
  /// The m at which exp(z y) M(z) / z is least on the real axis right of `end`.
  double saddle(double y, double end) const {
    double low = 0, high = end < 0 ? 1 : (1 + static_cast<double>(s_) / k_) / y;
    for (int step = 0; step < 60; ++step) {
      const double m = (low + high) / 2;
      double slope = y - 1 / (end + m);
      for (int64_t i = 1; i <= s_; ++i) slope -= 1 / (k_ * (static_cast<double>(i) + end + m));
      (slope < 0 ? low : high) = m;
    }
    return (low + high) / 2;
  }

  /// Neither too close to the pole at 0 nor to the branch point at -1.
  double near_saddle(double y) const { return std::clamp(saddle(y, -1), 1 / (2 + y), 0.5); }

  /// log(exp(z y) M(z))
  std::complex<double> exponent(double y, std::complex<double> z) const {
    std::complex<double> sum = z * y;
    for (int64_t i = 1; i <= s_; ++i) sum -= std::log(1.0 + z / static_cast<double>(i)) / k_;
    return sum;
  }

  double integrate(double y, double end, double m, bool density = false) const {
    const double vertex = exponent(y, end + m).real();
    const double h = 0.08 / std::sqrt(1 + m * y);
    double sum = 0, size = 1, largest = 0;
    for (int64_t n = 0; size > 1e-18 * largest; ++n) {
      const std::complex<double> root(1, h * static_cast<double>(n)), z = end + m * root * root;
      // dz / (2 pi i) = m root du / pi, and the lower half of the path is the conjugate of the
      // upper.
      const auto value = std::exp(exponent(y, z) - vertex) * m * root / (density ? 1.0 : z);
      sum += (n == 0 ? 1 : 2) * value.real();
      size = std::abs(value);
      largest = std::max(largest, size);
    }
    return sum * h / std::numbers::pi * std::exp(vertex);
  }

  double k_;
  int64_t s_;
};

}  // namespace aimle
