// The source of the row kernels, included once per instruction set. Private to row_kernels*.cpp.
#pragma once

#include "aimle/estimate/fixed_sum.h"
#include "aimle/estimate/row_kernels.h"

namespace aimle {
namespace {

template <class T>
double sum_of_squares(const T* x, int64_t n) {
  double partial[kSumLanes] = {};
  const auto add = [&partial](const T* block) {
    for (int lane = 0; lane < kSumLanes; ++lane) {
      const double v = static_cast<double>(block[lane]);
      partial[lane] += v * v;
    }
  };
  int64_t j = 0;
  for (; j + kSumLanes <= n; j += kSumLanes) add(x + j);
  if (j < n) {  // zeros do not change a sum of squares
    T rest[kSumLanes] = {};
    for (int64_t lane = 0; j + lane < n; ++lane) rest[lane] = x[j + lane];
    add(rest);
  }
  return fold(partial);
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
constexpr RowKernels<T> kKernels = {.sum_of_squares = sum_of_squares<T>,
                                    .perturb = perturb_row<T>,
                                    .step = step_row<T>,
                                    .add_difference = add_difference<T>,
                                    .divide = divide<T>};

}  // namespace
}  // namespace aimle
