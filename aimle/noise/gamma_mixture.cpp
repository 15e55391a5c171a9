#include "aimle/noise/gamma_mixture.h"

#include <algorithm>
#include <cmath>

namespace aimle {
namespace {

constexpr double kNegligible = 1e-17;

/// log Gamma(z), z > 0, by Stirling's series. (std::lgamma writes to a global.)
double log_gamma(double z) {
  double product = 1;
  for (; z < 10; z += 1) product *= z;
  const double r = 1 / (z * z);
  const double series =
      (1.0 / 12 - r * (1.0 / 360 -
                       r * (1.0 / 1260 - r * (1.0 / 1680 - r * (1.0 / 1188 - r * 691 / 360360))))) /
      z;
  return (z - 0.5) * std::log(z) - z + 0.91893853320467274178 + series - std::log(product);
}

/// x^c exp(-x) / Gamma(c + 1)
double poisson_weight(double c, double x) {
  return std::exp(c * std::log(x) - x - log_gamma(c + 1));
}

/// Q(a, x): the probability that a Gamma(a, 1) variable exceeds x.
double upper_gamma(double a, double x) {
  if (x < a + 1) {
    double term = poisson_weight(a, x), sum = term;
    for (double c = a + 1; term > kNegligible * sum; ++c) sum += term *= x / c;
    return 1 - sum;
  }
  // Lentz's algorithm for the continued fraction x + 1 - a - 1(1 - a) / (x + 3 - a - ...).
  double b = x + 1 - a, c = 1e300, d = 1 / b, fraction = d;
  for (double i = 1; i < 10'000; ++i) {
    const double numerator = -i * (i - a);
    b += 2;
    d = 1 / (numerator * d + b);
    c = b + numerator / c;
    fraction *= c * d;
    if (std::abs(c * d - 1) < 1e-16) break;
  }
  return poisson_weight(a, x) * a * fraction;
}

}  // namespace

GammaMixture::GammaMixture(int64_t k, int64_t s)
    : scale_(static_cast<double>(s)), shape_(scale_ / static_cast<double>(k)) {
  const double alpha = 1 / static_cast<double>(k);
  std::vector<double> ratio;
  for (int64_t i = 1; i <= s; ++i) ratio.push_back(1 - static_cast<double>(i) / scale_);

  // history[i] = sum_{l=1..j} ratio[i]^l w_{j-l}, and j w_j = alpha sum_i history[i]. The weights
  // sum to 1, so they are first computed up to a factor, which is reduced if they grow too large.
  std::vector<double> history(static_cast<size_t>(s), 0.0);
  weights_ = {1.0};
  double total = 1;
  const auto lower_factor = [&] {
    constexpr double kFactor = 1e-200;
    for (double& weight : weights_) weight *= kFactor;
    for (double& sum : history) sum *= kFactor;
    total *= kFactor;
  };
  // Past their mode the weights decrease by (1 - 1/s) per step.
  while (s > 1 && weights_.back() * scale_ > 1e-24 * total) {
    double sum = 0;
    for (size_t i = 0; i < history.size(); ++i) {
      history[i] = ratio[i] * (history[i] + weights_.back());
      sum += history[i];
    }
    weights_.push_back(alpha * sum / static_cast<double>(weights_.size()));
    total += weights_.back();
    if (total > 1e200) lower_factor();
  }

  const size_t count = weights_.size();
  for (double& weight : weights_) weight /= total;
  below_ = above_ = std::vector<double>(count, 0.0);
  below_[0] = weights_[0];
  for (size_t j = 1; j < count; ++j) below_[j] = below_[j - 1] + weights_[j];
  for (size_t j = count - 1; j > 0; --j) above_[j - 1] = above_[j] + weights_[j];
}

// Both sums start at the largest t_m and go up, then down. A sum has settled when the terms are
// below kNegligible of it; if its other factor may still increase, t_m alone is the bound.

GammaMixture::Value GammaMixture::lower(double y) const {
  const double x = scale_ * y;
  const auto last = static_cast<int64_t>(weights_.size()) - 1;
  const auto below = [&](int64_t m) { return below_[static_cast<size_t>(std::min(m, last))]; };
  const auto next = [&](int64_t m) { return m < last ? weights_[static_cast<size_t>(m + 1)] : 0; };
  const auto middle = std::max<int64_t>(0, static_cast<int64_t>(x - shape_));
  const double largest = poisson_weight(shape_ + static_cast<double>(middle), x);

  double probability = 0;
  double density = weights_[0] * poisson_weight(shape_, x) * shape_ / x;
  double t = largest;
  for (int64_t m = middle;; ++m) {
    probability += t * below(m);
    density += t * next(m);
    if (t <= kNegligible * std::min(probability, density)) break;
    t *= x / (shape_ + static_cast<double>(m + 1));
  }
  t = largest;
  for (int64_t m = middle - 1; m >= 0; --m) {
    t *= (shape_ + static_cast<double>(m + 1)) / x;
    probability += t * below(m);
    density += t * next(m);
    if (t * below(m) <= kNegligible * probability && t <= kNegligible * density) break;
  }
  return {probability, scale_ * density};
}

GammaMixture::Value GammaMixture::upper(double y) const {
  const double x = scale_ * y;
  const auto last = static_cast<int64_t>(weights_.size()) - 1;
  const auto above = [&](int64_t m) { return above_[static_cast<size_t>(m)]; };
  const auto next = [&](int64_t m) { return weights_[static_cast<size_t>(m + 1)]; };
  const auto middle = std::clamp<int64_t>(static_cast<int64_t>(x - shape_), 0, last);
  const double largest = poisson_weight(shape_ + static_cast<double>(middle), x);

  double probability = upper_gamma(shape_, x);
  double density = weights_[0] * poisson_weight(shape_, x) * shape_ / x;
  double t = largest;
  for (int64_t m = middle; m < last; ++m) {
    probability += t * above(m);
    density += t * next(m);
    if (t * above(m) <= kNegligible * std::min(probability, density)) break;
    t *= x / (shape_ + static_cast<double>(m + 1));
  }
  t = largest;
  for (int64_t m = middle - 1; m >= 0; --m) {
    t *= (shape_ + static_cast<double>(m + 1)) / x;
    probability += t * above(m);
    density += t * next(m);
    if (t <= kNegligible * std::min(probability, density)) break;
  }
  return {probability, scale_ * density};
}

}  // namespace aimle
