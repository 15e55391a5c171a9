// The source of the row kernels, included once per instruction set. Private to row_kernels*.cpp.
#pragma once

#include "aimle/estimate/fixed_sum.h"
#include "aimle/estimate/row_kernels.h"

namespace aimle {
namespace {

// Four neighbouring partial sums; group g holds lanes 4g ... 4g + 3.
using Four = double __attribute__((vector_size(32)));
static_assert(kSumLanes == 32);

template <class T>
[[gnu::always_inline]] inline Four load_four(const T* x) {
  using Loaded [[gnu::vector_size(4 * sizeof(T))]] = T;
  Loaded loaded;
  __builtin_memcpy(&loaded, x, sizeof loaded);
  return __builtin_convertvector(loaded, Four);
}

/// Squares of x_j ... x_(j+3); zeros, which change no sum of squares, from n on.
template <class T>
[[gnu::always_inline]] inline Four squares(const T* x, int64_t j, int64_t n) {
  Four v = {};
  if (j + 4 <= n) {
    v = load_four(x + j);
  } else if (j < n) {
    const T rest[4] = {x[j], j + 1 < n ? x[j + 1] : T(0), j + 2 < n ? x[j + 2] : T(0), T(0)};
    v = load_four(rest);
  }
  return v * v;
}

/// Named, not an array, so that the partial sums stay in registers.
template <class T>
[[gnu::always_inline]] inline double sum_of_squares(const T* x, int64_t n) {
  Four p0 = {}, p1 = {}, p2 = {}, p3 = {}, p4 = {}, p5 = {}, p6 = {}, p7 = {};
  for (int64_t j = 0; j < n; j += kSumLanes) {
    p0 += squares(x, j, n);
    p1 += squares(x, j + 4, n);
    p2 += squares(x, j + 8, n);
    p3 += squares(x, j + 12, n);
    p4 += squares(x, j + 16, n);
    p5 += squares(x, j + 20, n);
    p6 += squares(x, j + 24, n);
    p7 += squares(x, j + 28, n);
  }
  // The tree of fixed_sum.h: 16, 8 and 4 between the groups, then 2 and 1 within the last.
  const Four folded = ((p0 + p4) + (p2 + p6)) + ((p1 + p5) + (p3 + p7));
  return (folded[0] + folded[2]) + (folded[1] + folded[3]);
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
