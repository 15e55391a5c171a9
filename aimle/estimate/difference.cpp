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
  own_lambda_ = target != nullptr && target->scope == AdaptiveTarget::Scope::kSample;
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
    for (int64_t j = 0; j < n; ++j) {
      const double change = static_cast<double>(z_left[j] - z_right[j]);
      if (change != 0.0) sum[j] += change / lambda;
      nonzeros = std::isnan(change) || nonzeros < 0 ? -1 : nonzeros + (change != 0.0);
    }
  } else {
    nonzeros = kernels_.add_difference(z_left, z_right, n, sum);
  }
  if (step.counted[row] && nonzeros >= 0) {
    changes_.nonzeros += nonzeros;
    changes_.changed += nonzeros > 0;
    changes_.samples += 1;
  }
}

template <class T>
void DifferenceSum<T>::finish(int64_t b, const ExampleStep& step, T* dtheta) {
  const double samples = static_cast<double>(settings_.samples);
  double divisor = settings_.difference == Difference::kCentral ? 2.0 * step.lambda : step.lambda;
  const auto* target = std::get_if<AdaptiveTarget>(&settings_.target);
  if (target != nullptr && target->reference) divisor /= std::sqrt(samples);
  if (settings_.output == Output::kMean) divisor *= samples;
  const double sign = settings_.sense == Sense::kMin ? -1.0 : 1.0;

  if (step.all_free && divisor > 0.0) {
    changes_.zeros += kernels_.divide(sum_.data(), sign, divisor, examples_.n, dtheta);
    changes_.entries += examples_.n;
    return;
  }
  for (int64_t j = 0; j < examples_.n; ++j) {
    double& sum = sum_[static_cast<size_t>(j)];
    const bool free = is_free(examples_, b, j);
    // At lambda = 0 both solutions are the same; a NaN still passes.
    const double g = !free ? 0.0 : divisor > 0.0 ? sign * sum / divisor : sum * 0.0;
    dtheta[j] = static_cast<T>(g);
    changes_.zeros += free && g == 0.0;
    changes_.entries += free;
    sum = 0.0;
  }
}

template class DifferenceSum<float>;
template class DifferenceSum<double>;

}  // namespace aimle
