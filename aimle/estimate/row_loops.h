// The source of the row kernels, included once per instruction set. Private to row_kernels*.cpp.
#pragma once

#include "aimle/estimate/fixed_sum.h"
#include "aimle/estimate/row_kernels.h"

namespace aimle {
namespace {

// Four neighbouring partial sums; group g holds lanes 4g ... 4g + 3.
using Four = double __attribute__((vector_size(32)));
inline constexpr int kGroups = kSumLanes / 4;

template <class T>
[[gnu::always_inline]] inline Four load_four(const T* x) {
  return Four{static_cast<double>(x[0]), static_cast<double>(x[1]), static_cast<double>(x[2]),
              static_cast<double>(x[3])};
}

template <class T>
[[gnu::always_inline]] inline double sum_of_squares(const T* x, int64_t n) {
  Four partial[kGroups] = {};
  int64_t j = 0;
  for (; j + kSumLanes <= n; j += kSumLanes) {
    for (int group = 0; group < kGroups; ++group) {
      const Four v = load_four(x + j + 4 * group);
      partial[group] += v * v;
    }
  }
  int group = 0;
  for (; j + 4 <= n; j += 4, ++group) {
    const Four v = load_four(x + j);
    partial[group] += v * v;
  }
  if (j < n) {  // zeros do not change a sum of squares
    T rest[4] = {};
    for (int64_t lane = 0; j + lane < n; ++lane) rest[lane] = x[j + lane];
    const Four v = load_four(rest);
    partial[group] += v * v;
  }
  // The tree of fixed_sum.h: 16, 8, 4 within the groups, then 2 and 1 within the last.
  for (int half = kGroups / 2; half > 0; half /= 2) {
    for (int g = 0; g < half; ++g) partial[g] += partial[g + half];
  }
  return (partial[0][0] + partial[0][2]) + (partial[0][1] + partial[0][3]);
}

template <class T>
void norms(const T* x, int64_t rows, int64_t n, double* out) {
  for (int64_t r = 0; r < rows; ++r) out[r] = sum_of_squares(x + r * n, n);
  for (int64_t r = 0; r < rows; ++r) out[r] = __builtin_sqrt(out[r]);
}

template <class T>
void perturb_row(const T* __restrict theta, const float* __restrict eps, T tau, Signs sign,
                 int64_t n, T* __restrict out) {
  for (int64_t j = 0; j < n; ++j) out[j] = perturbed(theta[j], eps[j], tau, sign);
}

template <class T>
void step_row(const T* __restrict theta, const T* __restrict d, double lambda,
              const float* __restrict eps, T tau, Signs sign, int64_t n, T* __restrict out) {
  for (int64_t j = 0; j < n; ++j) out[j] = stepped(theta[j], d[j], lambda, eps[j], tau, sign);
}

template <class T>
int64_t add_difference(const T* __restrict left, const T* __restrict right, int64_t n,
                       double* __restrict sum) {
  int64_t nonzeros = 0, nans = 0;
  for (int64_t j = 0; j < n; ++j) {
    const T change = left[j] - right[j];
    nonzeros += change != T(0);
    nans += change != change;
    sum[j] += static_cast<double>(change);
  }
  return nans > 0 ? -1 : nonzeros;
}

template <class T>
int64_t divide(double* __restrict sum, double scale, double divisor, int64_t n, T* __restrict out) {
  int64_t zeros = 0;
  for (int64_t j = 0; j < n; ++j) {
    const double g = scale * sum[j] / divisor;
    out[j] = static_cast<T>(g);
    zeros += g == 0.0;
    sum[j] = 0.0;
  }
  return zeros;
}

template <class T>
constexpr RowKernels<T> kKernels = {.norms = norms<T>,
                                    .perturb = perturb_row<T>,
                                    .step = step_row<T>,
                                    .add_difference = add_difference<T>,
                                    .divide = divide<T>};

}  // namespace
}  // namespace aimle
