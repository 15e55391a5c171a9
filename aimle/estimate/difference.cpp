#include "aimle/estimate/difference.h"

#include <algorithm>
#include <cmath>

namespace aimle {

template <class T>
DifferenceSum<T>::DifferenceSum(const PassSettings& settings, const Examples<T>& examples)
    : rule_(divide_rule(settings)),
      examples_(examples),
      kernels_(row_kernels<T>()),
      sum_(static_cast<size_t>(examples.n), 0.0) {}

template <class T>
void DifferenceSum<T>::add(const ExampleStep& step, int64_t s, const T* z_left, const T* z_right) {
  const auto row = static_cast<size_t>(rule_.row(s));
  const int64_t n = examples_.n;
  double* sum = sum_.data();
  const double lambda = step.sample[row];
  if (std::isnan(lambda)) {
    std::fill(sum_.begin(), sum_.end(), lambda);
    return;
  }
  const int64_t nonzeros = rule_.own_lambda ? kernels_.add_scaled_difference(
                                                  z_left, z_right, rule_.factor(lambda), n, sum)
                                            : kernels_.add_difference(z_left, z_right, n, sum);
  if (step.counted[row]) count_change(nonzeros, changes_);
}

template <class T>
void DifferenceSum<T>::only(int64_t b, const ExampleStep& step, const T* z_left, const T* z_right,
                            T* dtheta) {
  // Differences are -1, 0 or 1, so the quotient can be computed and rounded once.
  const double quotient = rule_.quotient(rule_.sign, 1.0, rule_.divisor(step.shared.lambda));
  const auto factor = static_cast<T>(quotient);
  const bool plain = step.all_free && !rule_.own_lambda && !std::isnan(step.sample[0]);
  if (plain && quotient != 0.0 && std::isfinite(factor)) {
    const int64_t nonzeros = kernels_.difference(z_left, z_right, factor, examples_.n, dtheta);
    if (nonzeros >= 0) {
      if (step.counted[0]) count_change(nonzeros, changes_);
      changes_.zeros += examples_.n - nonzeros;
      changes_.entries += examples_.n;
      return;
    }
  }
  add(step, 0, z_left, z_right);
  finish(b, step, dtheta);
}

template <class T>
void DifferenceSum<T>::finish(int64_t b, const ExampleStep& step, T* dtheta) {
  const double divisor = rule_.divisor(step.shared.lambda);
  if (step.all_free && divisor > 0.0) {
    changes_.zeros += kernels_.divide(sum_.data(), rule_.sign, divisor, examples_.n, dtheta);
    changes_.entries += examples_.n;
    return;
  }
  for (int64_t j = 0; j < examples_.n; ++j) {
    double& sum = sum_[static_cast<size_t>(j)];
    const bool free = is_free(examples_, b, j);
    const double g = rule_.gradient(sum, divisor, free);
    dtheta[j] = static_cast<T>(g);
    count_entry(g, free, changes_);
    sum = 0.0;
  }
}

template class DifferenceSum<float>;
template class DifferenceSum<double>;

}  // namespace aimle
