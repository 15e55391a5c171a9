#include "aimle/estimate/step_size.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "aimle/estimate/fixed_sum.h"

namespace aimle {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class T>
double sum_of_squares(const T* x, int64_t n) {
  return fixed_sum(n, [x](int64_t j) {
    const double v = static_cast<double>(x[j]);
    return v * v;
  });
}

template <class T>
double sum_of_free_squares(const Examples<T>& examples, int64_t b, const T* x) {
  return fixed_sum(examples.n, [&](int64_t j) {
    const double v = is_free(examples, b, j) ? static_cast<double>(x[j]) : 0.0;
    return v * v;
  });
}

const AdaptiveTarget* adaptive(const EstimatorSettings& settings) {
  return std::get_if<AdaptiveTarget>(&settings.target);
}

}  // namespace

template <class T>
StepSizes<T>::StepSizes(const EstimatorSettings& settings, const Examples<T>& examples, const T* dy,
                        double alpha, const Executor& executor)
    : settings_(settings),
      examples_(examples),
      dy_(dy),
      alpha_(alpha),
      rows_(settings.output == Output::kMean ? 1 : settings.samples) {
  const AdaptiveTarget* target = adaptive(settings);
  if (target == nullptr || target->scope != AdaptiveTarget::Scope::kBatch) return;

  std::vector<double> theta_squares(static_cast<size_t>(examples.count));
  std::vector<double> dy_squares(static_cast<size_t>(examples.count));
  std::vector<double> free_entries(static_cast<size_t>(examples.count));
  const double ns = 0.5 * static_cast<double>(examples.n * (1 + rows_));
  parallel_for(executor, examples.count, ns, [&](int64_t begin, int64_t end) {
    std::vector<double> d;
    for (int64_t b = begin; b < end; ++b) {
      double theta = 0.0;
      int64_t free = 0;
      norms(b, theta, d, free);
      const auto at = static_cast<size_t>(b);
      theta_squares[at] = theta * theta;
      free_entries[at] = static_cast<double>(free);
      dy_squares[at] = fixed_sum(rows_, [&](int64_t s) {
        const double norm = d[static_cast<size_t>(s)];
        return std::isfinite(norm) ? norm * norm : 0.0;
      });
    }
  });
  auto total = [&](const std::vector<double>& values) {
    return fixed_sum(examples.count, [&](int64_t b) { return values[static_cast<size_t>(b)]; });
  };
  const double gradient = total(dy_squares);
  const double sigma = settings.noise_stddev * settings.target_temperature;
  const double size = target->scale == AdaptiveTarget::Scale::kTheta
                          ? total(theta_squares)
                          : sigma * sigma * total(free_entries);
  batch_lambda_ =
      gradient > 0.0 ? alpha * std::sqrt(static_cast<double>(rows_) * size / gradient) : 0.0;
}

template <class T>
void StepSizes<T>::norms(int64_t b, double& theta, std::vector<double>& d, int64_t& free) const {
  const int64_t n = examples_.n;
  const T* theta_row = examples_.theta + b * n;
  const T* dy_rows = dy_ + b * rows_ * n;
  d.resize(static_cast<size_t>(rows_));
  free = n;
  double squares = sum_of_squares(theta_row, n);
  const bool all_free = examples_.mask == nullptr && std::isfinite(squares);
  if (!all_free) {
    squares = sum_of_free_squares(examples_, b, theta_row);
    free = 0;
    for (int64_t j = 0; j < n; ++j) free += is_free(examples_, b, j);
  }
  theta = std::sqrt(squares);
  for (int64_t s = 0; s < rows_; ++s) {
    const T* row = dy_rows + s * n;
    d[static_cast<size_t>(s)] =
        std::sqrt(all_free ? sum_of_squares(row, n) : sum_of_free_squares(examples_, b, row));
  }
}

template <class T>
void StepSizes<T>::compute(int64_t b, ExampleStep& step) const {
  const auto rows = static_cast<size_t>(rows_);
  std::vector<double>& norm = step.sample;  // turned into step sizes in place
  double theta = 0.0;
  int64_t free = 0;
  norms(b, theta, norm, free);

  step.counted.resize(rows);
  double largest = 0.0;
  int64_t counted = 0;
  for (size_t s = 0; s < rows; ++s) {
    step.counted[s] = std::isfinite(norm[s]) && norm[s] > 0.0 && std::isfinite(theta);
    counted += step.counted[s];
    if (step.counted[s]) largest = std::max(largest, norm[s]);
  }

  const AdaptiveTarget* target = adaptive(settings_);
  double shared = 0.0;
  if (target == nullptr) {
    shared = std::get<FixedTarget>(settings_.target).lambda;
  } else if (target->scope == AdaptiveTarget::Scope::kBatch) {
    shared = batch_lambda_;
  } else {
    const double sigma = settings_.noise_stddev * settings_.target_temperature;
    const double size = target->scale == AdaptiveTarget::Scale::kTheta
                            ? theta
                            : sigma * std::sqrt(static_cast<double>(free));
    auto in_mean = [&](size_t s) {
      return step.counted[s] != 0 && norm[s] >= kSmallGradient * largest;
    };
    int64_t used = 0;
    for (size_t s = 0; s < rows; ++s) used += in_mean(s);
    const double sum = fixed_sum(rows_, [&](int64_t i) {
      const auto s = static_cast<size_t>(i);
      return in_mean(s) ? size / norm[s] : 0.0;
    });
    shared = used > 0 ? alpha_ * (sum / static_cast<double>(used)) : 0.0;
    if (target->scope == AdaptiveTarget::Scope::kSample) {
      for (size_t s = 0; s < rows; ++s) {
        if (std::isfinite(norm[s])) norm[s] = step.counted[s] ? alpha_ * (size / norm[s]) : 0.0;
        if (!std::isfinite(norm[s])) norm[s] = kNaN;
      }
      step.lambda = 1.0;  // each sample's difference is divided by its own
      step.reported = counted > 0 ? shared : kNaN;
      return;
    }
  }
  for (size_t s = 0; s < rows; ++s) norm[s] = std::isfinite(norm[s]) ? shared : kNaN;
  step.lambda = shared;
  step.reported = counted > 0 ? shared : kNaN;
}

template class StepSizes<float>;
template class StepSizes<double>;

}  // namespace aimle
