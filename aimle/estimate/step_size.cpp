#include "aimle/estimate/step_size.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "aimle/estimate/fixed_sum.h"
#include "aimle/estimate/fixed_total.h"

namespace aimle {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

const AdaptiveTarget* adaptive(const EstimatorSettings& settings) {
  return std::get_if<AdaptiveTarget>(&settings.target);
}

}  // namespace

template <class T>
StepSizes<T>::StepSizes(const EstimatorSettings& settings, const SolutionSize& size,
                        const Examples<T>& examples, const GradientRows<T>& dy, double alpha,
                        const Executor& executor)
    : settings_(settings),
      size_(size),
      examples_(examples),
      dy_(dy),
      row_norms_(row_kernels<T>().norms),
      alpha_(alpha),
      rows_(gradient_rows(settings)) {
  const AdaptiveTarget* target = adaptive(settings);
  if (target != nullptr && target->scale != AdaptiveTarget::Scale::kTheta) {
    sees_choice_ = true;
    centred_ = norms_are_centred(*target, size);
    if (centred_) row_norms_ = row_kernels<T>().centred_norms;
  }
  if (target == nullptr || target->scope != AdaptiveTarget::Scope::kBatch) return;

  std::vector<double> theta_squares(static_cast<size_t>(examples.count));
  std::vector<double> dy_squares(static_cast<size_t>(examples.count));
  std::vector<double> free_entries(static_cast<size_t>(examples.count));
  const double ns = 0.5 * static_cast<double>(examples.n * (1 + rows_));
  parallel_for(executor, examples.count, ns, [&](int64_t begin, int64_t end) {
    NormWindow window;
    PerSample<double> d;
    for (int64_t b = begin; b < end; ++b) {
      const Norms norm = norms(b, window, d);
      if (!std::isfinite(norm.theta)) continue;  // its own gradient will be NaN
      const auto at = static_cast<size_t>(b);
      theta_squares[at] = norm.theta * norm.theta;
      free_entries[at] = static_cast<double>(norm.free);
      dy_squares[at] = fixed_sum(rows_, [&](int64_t s) {
        const double length = d[static_cast<size_t>(s)];
        return std::isfinite(length) ? length * length : 0.0;
      });
    }
  });
  auto total = [&](const std::vector<double>& values) {
    return fixed_total(examples.count, [&](int64_t b) { return values[static_cast<size_t>(b)]; });
  };
  const double gradient = total(dy_squares);
  double squares = total(theta_squares);
  if (target->scale != AdaptiveTarget::Scale::kTheta) {
    const double scale =
        step_scale(target->scale, std::sqrt(squares),
                   settings.noise_stddev * settings.target_temperature, total(free_entries));
    squares = scale * scale;
  }
  batch_lambda_ =
      gradient > 0.0 ? alpha * std::sqrt(static_cast<double>(rows_) * squares / gradient) : 0.0;
}

template <class T>
void StepSizes<T>::move_to(int64_t b, NormWindow& window) const {
  constexpr int64_t kExamples = 64, kRows = 1024;
  const int64_t fit = std::clamp<int64_t>(kRows / rows_, 1, kExamples);
  const int64_t count = std::min(examples_.count - b, fit);
  window.first = b;
  window.last = b + count;
  window.theta.resize(static_cast<size_t>(count));
  window.d.resize(static_cast<size_t>(count * rows_));
  const int64_t n = examples_.n;
  row_norms_(examples_.theta + b * n, count, n, window.theta.data());
  if (dy_.is_packed(rows_, n)) {
    row_norms_(dy_.row(b, 0, n, nullptr), count * rows_, n, window.d.data());
    return;
  }
  std::vector<T> buffer(static_cast<size_t>(n));
  for (int64_t i = 0; i < count * rows_; ++i) {
    const T* d = dy_.row(b + i / rows_, i % rows_, n, buffer.data());
    row_norms_(d, 1, n, window.d.data() + i);
  }
}

template <class T>
double StepSizes<T>::norm_of_free(int64_t b, int64_t free, const T* x) const {
  const auto sum = [&](auto term) {
    return fixed_sum(examples_.n, [&](int64_t j) {
      return is_free(examples_, b, j) ? term(static_cast<double>(x[j])) : 0.0;
    });
  };
  if (!centred_) return std::sqrt(sum([](double v) { return v * v; }));
  const auto entries = static_cast<double>(free);
  const double mean = mean_of(sum([](double v) { return v; }), entries);
  return centred_norm(sum([mean](double v) { return (v - mean) * (v - mean); }), mean, entries);
}

template <class T>
typename StepSizes<T>::Norms StepSizes<T>::norms(int64_t b, NormWindow& window,
                                                 PerSample<double>& d) const {
  if (b < window.first || b >= window.last) move_to(b, window);
  const int64_t at = b - window.first;
  const double theta = window.theta[static_cast<size_t>(at)];
  const bool all_free = examples_.mask == nullptr && std::isfinite(theta);
  const int64_t n = examples_.n;
  d.resize(static_cast<size_t>(rows_));
  Norms result{.theta = theta, .free = n, .all_free = all_free};
  if (all_free) {
    const double* seen = window.d.data() + at * rows_;
    for (int64_t s = 0; s < rows_; ++s) d[static_cast<size_t>(s)] = seen[s];
  } else {
    result.free = 0;
    for (int64_t j = 0; j < n; ++j) result.free += is_free(examples_, b, j);
    result.theta = norm_of_free(b, result.free, examples_.theta + b * n);
    std::vector<T> buffer(static_cast<size_t>(n));
    for (int64_t s = 0; s < rows_; ++s) {
      d[static_cast<size_t>(s)] = norm_of_free(b, result.free, dy_.row(b, s, n, buffer.data()));
    }
  }
  const int64_t ones = examples_.k != nullptr && size_.fixed ? examples_.k[b] : size_.ones;
  if (sees_choice_ && !has_choice(ones, result.free)) {
    for (int64_t s = 0; s < rows_; ++s) {
      double& norm = d[static_cast<size_t>(s)];
      if (std::isfinite(norm)) norm = 0.0;
    }
  }
  return result;
}

template <class T>
void StepSizes<T>::compute(int64_t b, NormWindow& window, ExampleStep& step) const {
  const auto rows = static_cast<size_t>(rows_);
  PerSample<double>& norm = step.sample;  // turned into step sizes in place
  const auto [theta, free, all_free] = norms(b, window, norm);
  step.all_free = all_free;

  const AdaptiveTarget* target = adaptive(settings_);
  const bool zeros_count =
      target != nullptr && target->reference && target->scope == AdaptiveTarget::Scope::kBatch;
  step.counted.resize(rows);
  double largest = 0.0;
  int64_t counted = 0;
  for (size_t s = 0; s < rows; ++s) {
    if (!std::isfinite(theta)) norm[s] = kNaN;
    step.counted[s] = std::isfinite(norm[s]) && (norm[s] > 0.0 || zeros_count);
    counted += step.counted[s];
    if (step.counted[s]) largest = std::max(largest, norm[s]);
  }

  double shared = 0.0;
  if (target == nullptr) {
    shared = std::get<FixedTarget>(settings_.target).lambda;
  } else if (target->scope == AdaptiveTarget::Scope::kBatch) {
    shared = batch_lambda_;
  } else {
    const double size =
        step_scale(target->scale, theta, settings_.noise_stddev * settings_.target_temperature,
                   static_cast<double>(free));
    auto in_mean = [&](size_t s) {
      return step.counted[s] != 0 && norm[s] >= kSmallGradient * largest;
    };
    int64_t used = 0;
    for (size_t s = 0; s < rows; ++s) used += in_mean(s);
    const double sum = fixed_sum(rows_, [&](int64_t i) {
      const auto s = static_cast<size_t>(i);
      return in_mean(s) ? size / norm[s] : 0.0;
    });
    // A division by one, skipped.
    const double mean = used > 1 ? sum / static_cast<double>(used) : sum;
    shared = used > 0 ? alpha_ * mean : 0.0;
    if (steps_by_sample(settings_)) {
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
