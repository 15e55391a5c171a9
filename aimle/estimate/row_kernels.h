// The loops over the entries of one row, for the instruction set in use.
//
// They only implement the formulas of perturb.h and the sums of fixed_sum.h; the same source is
// compiled for every instruction set (row_loops.h) and gives the same bits on each.
#pragma once

#include <cstdint>

#include "aimle/estimate/perturb.h"

namespace aimle {

/// The inputs of a step of a row of scores.
template <class T>
struct StepRow {
  const T* theta;
  const T* d;
  double lambda;
};

template <class T>
struct RowKernels {
  /// out_r = square root of the sum of x_rj^2 over j, in the fixed order; x is [rows, n].
  void (*norms)(const T* x, int64_t rows, int64_t n, double* out);

  /// out_r = norm of x_r minus its mean, in the fixed order; zero if only rounding errors are left.
  void (*centred_norms)(const T* x, int64_t rows, int64_t n, double* out);

  /// out_j = perturbed(theta_j, eps_j)
  void (*perturb)(const T* theta, const float* eps, T tau, Signs sign, int64_t n, T* out);

  /// out_j = stepped(theta_j, d_j, lambda, eps_j)
  void (*step)(const T* theta, const T* d, double lambda, const float* eps, T tau, Signs sign,
               int64_t n, T* out);

  /// For [count] rows at once: left and right = the scores after a step of +lambda and of -lambda.
  void (*step_both)(const StepRow<T>* rows, int64_t count, const float* eps, T tau, Signs sign,
                    int64_t n, T* left, T* right);

  /// sum_j += left_j - right_j; returns how many of the differences are not zero, -1 if one is NaN.
  int64_t (*add_difference)(const T* left, const T* right, int64_t n, double* sum);

  /// sum_j += (left_j - right_j) factor; returns the same.
  int64_t (*add_scaled_difference)(const T* left, const T* right, double factor, int64_t n,
                                   double* sum);

  /// out_j = sign sum_j / divisor, sum_j = 0; returns how many of the results are zero.
  int64_t (*divide)(double* sum, double sign, double divisor, int64_t n, T* out);

  /// out_j = (left_j - right_j) factor; returns how many of the differences are not zero, -1 if one
  /// is NaN.
  int64_t (*difference)(const T* left, const T* right, T factor, int64_t n, T* out);

  /// bits = which entries of z [rows, n] are 1, eight per byte; each row starts with a new byte.
  void (*pack)(const T* z, int64_t rows, int64_t n, uint8_t* bits);
};

template <class T>
const RowKernels<T>& row_kernels();

}  // namespace aimle
