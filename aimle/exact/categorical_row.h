// The categorical distribution of one row by a group of threads, on both devices; categorical.h has
// the equations.
#pragma once

#include <cmath>
#include <cstdint>

#include "aimle/base/combine.h"
#include "aimle/exact/masked_scores.h"
#include "aimle/exact/uniform.h"
#include "aimle/map/map.h"

namespace aimle::exact_row {

/// exp(x - max x), 0 for entries that may not be chosen, in `weight` [n] of the row's memory.
struct CategoricalRow {
  Status status;
  double largest;
  double sum;
};

/// Ends with a sync.
template <class T, class Group>
AIMLE_EITHER CategoricalRow read_weights(Group& group, int64_t n, const T* scores, const bool* mask,
                                         double* weight) {
  const double inf = __builtin_huge_val();
  bool bad = false;
  double largest = -inf;
  for (int64_t j = group.rank(); j < n; j += group.size()) {
    const double x = MaskedScores<T>{scores, mask}(j);
    bad |= x != x || x == inf;
    largest = x > largest ? x : largest;
    weight[j] = x;
  }
  if (group.any(bad)) return {Status::kNaN, 0, 0};
  largest = group.reduce(largest, Higher{});
  if (largest == -inf) return {Status::kTooFewEntries, 0, 0};
  double sum = 0;
  for (int64_t j = group.rank(); j < n; j += group.size()) {
    weight[j] = exp(weight[j] - largest);
    sum += weight[j];
  }
  return {Status::kOk, largest, group.reduce(sum, Plus{})};
}

/// Marginals [n] and Cov(z) v [n], each if not null.
template <class T, class Group>
AIMLE_EITHER void evaluate_categorical(Group& group, int64_t n, const CategoricalRow& row,
                                       const double* weight, const T* v, T* mu, T* covariance) {
  double mean = 0;
  for (int64_t j = group.rank(); j < n; j += group.size()) {
    const double p = weight[j] / row.sum;
    if (mu != nullptr) mu[j] = static_cast<T>(p);
    if (covariance != nullptr && p > 0) mean += p * static_cast<double>(v[j]);
  }
  if (covariance == nullptr) return;
  mean = group.reduce(mean, Plus{});
  for (int64_t j = group.rank(); j < n; j += group.size()) {
    const double p = weight[j] / row.sum;
    covariance[j] = static_cast<T>(p > 0 ? p * (static_cast<double>(v[j]) - mean) : 0.0);
  }
}

/// Samples of one row, z [samples, n], one sample per thread; instance b of the key.
template <class T, class Group>
AIMLE_EITHER void sample_categorical(Group& group, int64_t n, const CategoricalRow& row,
                                     const double* weight, Key key, int64_t b, int64_t samples,
                                     T* z) {
  for (int64_t e = group.rank(); e < samples * n; e += group.size()) z[e] = T(0);
  group.sync();
  for (int64_t s = group.rank(); s < samples; s += group.size()) {
    const double wanted = uniform(key, b, s, 0) * row.sum;
    double before = 0;
    int64_t chosen = 0;  // the last entry with a weight, in case rounding leaves the sum short
    for (int64_t j = 0; j < n && before <= wanted; ++j) {
      if (weight[j] > 0) chosen = j;
      before += weight[j];
    }
    z[s * n + chosen] = T(1);
  }
  group.sync();
}

}  // namespace aimle::exact_row
