#include "aimle/estimate/step_size.h"

#include <algorithm>
#include <cmath>

#include "aimle/estimate/fixed_sum.h"
#include "aimle/estimate/fixed_total.h"

namespace aimle {
namespace {

/// A single thread.
struct Alone {
  static constexpr int64_t kStride = 1;
  static int64_t first() { return 0; }
  static double max(double x) { return x; }
  static int sum(int x) { return x; }
  template <class Term>
  [[gnu::always_inline]] static double fixed_sum(int64_t n, Term term) {
    return aimle::fixed_sum(n, term);
  }
};

}  // namespace

template <class T>
StepSizes<T>::StepSizes(const PassSettings& settings, const SolutionSize& size,
                        const Examples<T>& examples, const GradientRows<T>& dy, double alpha,
                        const Executor& executor)
    : rule_(step_rule(settings, size)),
      examples_(examples),
      dy_(dy),
      row_norms_(rule_.centred ? row_kernels<T>().centred_norms : row_kernels<T>().norms),
      alpha_(alpha),
      rows_(gradient_rows(settings)) {
  if (!rule_.of_batch()) return;
  std::vector<BatchTerms> terms(static_cast<size_t>(examples.count));
  const double ns = 0.5 * static_cast<double>(examples.n * (1 + rows_));
  parallel_for(executor, examples.count, ns, [&](int64_t begin, int64_t end) {
    NormWindow window;
    PerSample<double> d;
    for (int64_t b = begin; b < end; ++b) {
      const ExampleNorms seen = norms(b, window, d).example;
      const double squares =
          fixed_sum(rows_, [&](int64_t s) { return finite_square(d[static_cast<size_t>(s)]); });
      terms[static_cast<size_t>(b)] = batch_terms(seen, squares);
    }
  });
  const auto total = [&](double BatchTerms::*term) {
    return fixed_total(examples.count,
                       [&](int64_t b) { return terms[static_cast<size_t>(b)].*term; });
  };
  const BatchTerms sums{.theta = total(&BatchTerms::theta),
                        .entries = total(&BatchTerms::entries),
                        .gradient = total(&BatchTerms::gradient)};
  batch_lambda_ = batch_step(rule_, sums, static_cast<double>(rows_), alpha);
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
  if (!rule_.centred) return std::sqrt(sum([](double v) { return v * v; }));
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
  Norms result{.example = {.theta = theta, .entries = n}, .all_free = all_free};
  if (all_free) {
    const double* seen = window.d.data() + at * rows_;
    for (int64_t s = 0; s < rows_; ++s) d[static_cast<size_t>(s)] = seen[s];
  } else {
    int64_t free = 0;
    for (int64_t j = 0; j < n; ++j) free += is_free(examples_, b, j);
    result.example = {.theta = norm_of_free(b, free, examples_.theta + b * n), .entries = free};
    std::vector<T> buffer(static_cast<size_t>(n));
    for (int64_t s = 0; s < rows_; ++s) {
      d[static_cast<size_t>(s)] = norm_of_free(b, free, dy_.row(b, s, n, buffer.data()));
    }
  }
  result.example.can_change =
      rule_.can_change(examples_.k != nullptr ? examples_.k + b : nullptr, result.example.entries);
  return result;
}

template <class T>
void StepSizes<T>::compute(int64_t b, NormWindow& window, ExampleStep& step) const {
  double* steps = step.sample.resize(static_cast<size_t>(rows_));  // norms, then step sizes
  uint8_t* counted = step.counted.resize(static_cast<size_t>(rows_));
  const Norms seen = norms(b, window, step.sample);
  step.all_free = seen.all_free;
  step.shared = set_steps<Alone>(
      rule_, seen.example, rows_, alpha_, batch_lambda_, [=](int64_t s) { return steps[s]; }, steps,
      counted);
}

template class StepSizes<float>;
template class StepSizes<double>;

}  // namespace aimle
