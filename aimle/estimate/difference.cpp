#include "aimle/estimate/difference.h"

#include <algorithm>
#include <cmath>

namespace aimle {

template <class T>
DifferenceSum<T>::DifferenceSum(const EstimatorSettings& settings, const Examples<T>& examples)
    : settings_(settings),
      examples_(examples),
      kernels_(row_kernels<T>()),
      sum_(static_cast<size_t>(examples.n), 0.0) {
  const auto* target = std::get_if<AdaptiveTarget>(&settings.target);
  own_lambda_ = steps_by_sample(settings);
  const auto samples = static_cast<double>(settings.samples);
  sign_ = settings.sense == Sense::kMin ? -1.0 : 1.0;
  sides_ = settings.difference == Difference::kCentral ? 2.0 : 1.0;
  root_ = target != nullptr && target->reference ? std::sqrt(samples) : 1.0;
  averaged_ = settings.output == Output::kMean ? samples : 1.0;
}

template <class T>
void DifferenceSum<T>::add(const ExampleStep& step, int64_t s, const T* z_left, const T* z_right) {
  const auto row = static_cast<size_t>(settings_.output == Output::kMean ? 0 : s);
  const int64_t n = examples_.n;
  double* sum = sum_.data();
  const double lambda = step.sample[row];
  if (std::isnan(lambda)) {  // whatever the solver made of it
    std::fill(sum_.begin(), sum_.end(), lambda);
    return;
  }
  int64_t nonzeros = 0;
  if (own_lambda_) {
    // Without a step both solutions are the same.
    nonzeros =
        kernels_.add_scaled_difference(z_left, z_right, lambda > 0.0 ? 1.0 / lambda : 0.0, n, sum);
  } else {
    nonzeros = kernels_.add_difference(z_left, z_right, n, sum);
  }
  if (step.counted[row]) count(nonzeros);
}

template <class T>
void DifferenceSum<T>::count(int64_t nonzeros) {
  if (nonzeros < 0) return;
  changes_.nonzeros += nonzeros;
  changes_.changed += nonzeros > 0;
  changes_.samples += 1;
}

template <class T>
double DifferenceSum<T>::divisor(const ExampleStep& step) const {
  double divisor = sides_ * step.lambda;
  if (root_ != 1.0) divisor /= root_;
  return divisor * averaged_;
}

template <class T>
void DifferenceSum<T>::only(int64_t b, const ExampleStep& step, const T* z_left, const T* z_right,
                            T* dtheta) {
  // Differences are -1, 0 or 1, so that the quotient may be taken and rounded once.
  const double quotient = sign_ / divisor(step);
  const auto factor = static_cast<T>(quotient);
  const bool plain = step.all_free && !own_lambda_ && !std::isnan(step.sample[0]);
  if (plain && quotient != 0.0 && std::isfinite(factor)) {
    const int64_t nonzeros = kernels_.difference(z_left, z_right, factor, examples_.n, dtheta);
    if (nonzeros >= 0) {
      if (step.counted[0]) count(nonzeros);
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
  const double by = divisor(step);
  if (step.all_free && by > 0.0) {
    changes_.zeros += kernels_.divide(sum_.data(), sign_, by, examples_.n, dtheta);
    changes_.entries += examples_.n;
    return;
  }
  for (int64_t j = 0; j < examples_.n; ++j) {
    double& sum = sum_[static_cast<size_t>(j)];
    const bool free = is_free(examples_, b, j);
    // At lambda = 0 both solutions are the same; a NaN still passes.
    const double g = !free ? 0.0 : by > 0.0 ? sign_ * sum / by : sum * 0.0;
    dtheta[j] = static_cast<T>(g);
    changes_.zeros += free && g == 0.0;
    changes_.entries += free;
    sum = 0.0;
  }
}

template class DifferenceSum<float>;
template class DifferenceSum<double>;

}  // namespace aimle
