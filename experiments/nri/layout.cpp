#include "experiments/nri/layout.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "aimle/base/check.h"

namespace aimle::experiments::nri {
namespace {

constexpr double kMinDistance = 0.01, kShortForce = 0.01;

double range(std::span<const double> values) {
  const auto [low, high] = std::ranges::minmax(values);
  return high - low;
}

double norm(double x, double y) { return std::sqrt(x * x + y * y); }

/// Subtracts the mean and returns the largest |value| that is left.
double centre(std::span<double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  double largest = 0;
  for (double& value : values) {
    value -= mean;
    largest = std::max(largest, std::fabs(value));
  }
  return largest;
}

}  // namespace

void layout_step(std::span<const uint8_t> adjacency, std::span<double> x, std::span<double> y,
                 ShortForce rule) {
  const size_t n = x.size();
  AIMLE_CHECK(n > 0 && y.size() == n && adjacency.size() == n * n,
              "[aimle nri] expected x and y of n > 0 vertices and n * n adjacency "
              "entries but got ",
              n, ", ", y.size(), " and ", adjacency.size());
  const double k = std::sqrt(1.0 / static_cast<double>(n));
  const double t = std::max(range(x), range(y)) * 0.1;
  std::vector<double> force_x(n);
  std::vector<double> force_y(n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      const double delta_x = x[i] - x[j];
      const double delta_y = y[i] - y[j];
      const double d = std::max(norm(delta_x, delta_y), kMinDistance);
      const double push = k * k / (d * d) - (adjacency[i * n + j] ? d / k : 0.0);
      force_x[i] += delta_x * push;
      force_y[i] += delta_y * push;
    }
  }
  for (size_t i = 0; i < n; ++i) {
    double length = norm(force_x[i], force_y[i]);
    if (length < kShortForce) length = rule == ShortForce::kTenth ? 0.1 : kShortForce;
    x[i] += force_x[i] * (t / length);
    y[i] += force_y[i] * (t / length);
  }
  const double limit = std::max(centre(x), centre(y));
  if (limit > 0) {
    for (size_t i = 0; i < n; ++i) {
      x[i] *= 1.0 / limit;
      y[i] *= 1.0 / limit;
    }
  }
}

}  // namespace aimle::experiments::nri
