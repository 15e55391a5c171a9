// The step size lambda, computed once per backward pass and used both to step and to divide.
//
//   kExample: lambda_b  = alpha mean_s(scale_b / ||d_bs||)
//   kSample:  lambda_bs = alpha scale_b / ||d_bs||
//   kBatch:   lambda    = alpha sqrt(S sum_b scale_b^2 / sum_bs ||d_bs||^2)
//
// where scale_b is ||theta_b||, bounded below or replaced by that of the noise (step_scale in
// step_rule.h). Norms run over free entries: unmasked and not infinite (no finite step moves an
// infinite score). Samples with a zero gradient have a lambda but are left out of the mean; a
// sample whose gradient or scores are not finite gets lambda = NaN, which reaches theta's gradient.
//
// Unless the scale is the paper's, norms ignore what cannot change a solution: if all solutions
// have the same number of ones the mean of a row is left out, and a row with a single feasible
// solution has a gradient of zero.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "aimle/base/parallel.h"
#include "aimle/estimate/gradient_rows.h"
#include "aimle/estimate/row_kernels.h"
#include "aimle/estimate/settings.h"
#include "aimle/estimate/step_rule.h"

namespace aimle {

/// One number per sample. A single one, the usual case, needs no allocation.
template <class V>
class PerSample {
 public:
  V* resize(size_t size) {
    size_ = size;
    if (size > 1 && many_.size() < size) many_.resize(size);
    return begin();
  }
  void assign(const V* first, const V* last) {
    resize(static_cast<size_t>(last - first));
    std::copy(first, last, begin());
  }
  V* begin() { return size_ > 1 ? many_.data() : &one_; }
  const V* begin() const { return size_ > 1 ? many_.data() : &one_; }
  V* end() { return begin() + size_; }
  const V* end() const { return begin() + size_; }
  V& operator[](size_t s) { return begin()[s]; }
  const V& operator[](size_t s) const { return begin()[s]; }

 private:
  size_t size_ = 0;
  V one_ = {};
  std::vector<V> many_;
};

/// The step sizes of one example.
struct ExampleStep {
  SharedStep shared;
  PerSample<double> sample;    // [S] (kMean: [1]), NaN where d or theta is not finite
  PerSample<uint8_t> counted;  // [S] (kMean: [1]), 1 where d is finite and not zero
  bool all_free = true;        // no entry is masked or infinite
};

/// Norms of a range of examples, computed together because short rows are slow one by one. One per
/// thread.
struct NormWindow {
  int64_t first = 0;
  int64_t last = 0;
  std::vector<double> theta;  // [last - first]
  std::vector<double> d;      // [last - first, S]
};

template <class T>
class StepSizes {
 public:
  /// Reads the whole batch only if the scope requires it.
  StepSizes(const PassSettings& settings, const SolutionSize& size, const Examples<T>& examples,
            const GradientRows<T>& dy, double alpha, const Executor& executor);

  /// Fills `step` for example b. Examples should be requested in order.
  void compute(int64_t b, NormWindow& window, ExampleStep& step) const;

  /// Gradient rows per example: S, or 1 if all samples share one.
  int64_t rows_per_example() const { return rows_; }

 private:
  struct Norms {
    ExampleNorms example;
    bool all_free = true;
  };
  /// Norms of example b and, into d, of its gradient rows.
  Norms norms(int64_t b, NormWindow& window, PerSample<double>& d) const;
  double norm_of_free(int64_t b, int64_t free, const T* x) const;
  void move_to(int64_t b, NormWindow& window) const;

  StepRule rule_;
  const Examples<T>& examples_;
  GradientRows<T> dy_;
  void (*row_norms_)(const T* x, int64_t rows, int64_t n, double* out);
  double alpha_;
  int64_t rows_;
  double batch_lambda_ = 0.0;
};

/// True if entry j of example b can move: unmasked and not infinite.
template <class T>
inline bool is_free(const Examples<T>& examples, int64_t b, int64_t j) {
  const int64_t at = b * examples.n + j;
  if (examples.mask != nullptr && !examples.mask[at]) return false;
  return !std::isinf(examples.theta[at]);  // NaN is free, so that it is noticed
}

}  // namespace aimle
