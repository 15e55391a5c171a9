// The interface of an exact distribution.
//
// Over the structures Z of a solver, scores x define the exponential family
//
//   p(z) = exp<x, z> / Z(x),   z in Z,
//
// whose mode is the solver's solution. Three quantities are related, each the derivative of the one
// before:
//
//   log-partition   A(x)  = log sum over z of exp<x, z>
//   marginals       mu    = grad A(x)    = E z           (as long as x, entries in [0, 1])
//   covariance      Cov(z) v             = d mu(x + t v) / dt at t = 0
//
// Cov(z) is symmetric, so its product with v serves both forward and reverse differentiation, and
// the gradient of E f(z) is Cov(z) grad f if f is linear on Z. The settings of a solver define the
// distribution: Argmax the categorical (categorical.h), TopK the k-subsets (k_subset.h),
// SpanningTree the trees (tree_distribution.h), and so on; others are listed (enumerate.h).
//
// All follow the same rules:
//   * float64 inside, whatever the type of the scores;
//   * masked entries, and scores of -inf, have probability 0;
//   * outcomes are a Status per row, and a row that is not kOk is filled with NaN. +inf has no
//     distribution and counts as NaN;
//   * samples are a pure function of (key, instance b, sample s), the same for any batch split and
//     thread count.
//
//   std::vector<float> mu(rows * n);
//   aimle::evaluate(aimle::TopK{.n = n, .k = 5},
//                   aimle::DistributionRows<float>{.count = rows, .scores = x, .status = status,
//                                                  .marginals = mu.data()});
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "aimle/map/map.h"
#include "aimle/noise/philox.h"

namespace aimle {

/// A batch of rows and the requested outputs; a null output is not computed.
template <class T>
struct DistributionRows {
  int64_t count = 0;
  const T* scores = nullptr;   // [count, size]
  const bool* mask = nullptr;  // [count, size], true = may be chosen; null = all may
  const int64_t* k = nullptr;  // [count], overrides the k of TopK; null = its own
  InstanceData data;           // for solvers that take data
  const T* v = nullptr;        // [count, size], needed for `covariance`; may be NaN where masked
  Status* status = nullptr;    // [count], written
  T* log_partition = nullptr;  // [count], written
  T* marginals = nullptr;      // [count, size], written
  T* covariance = nullptr;     // [count, size], written: Cov(z) v
};

/// Samples of a batch of rows: z[i, s] of row i, which is instance first + i of the key.
template <class T>
struct SampleRows {
  int64_t first = 0;
  int64_t count = 0;
  int64_t samples = 1;
  const T* scores = nullptr;   // [count, size]
  const bool* mask = nullptr;  // as above
  const int64_t* k = nullptr;  // as above
  InstanceData data;           // as above
  Key key;
  Status* status = nullptr;  // [count], written
  T* z = nullptr;            // [count, samples, size], written
};

/// The requirements. `evaluate_rows` and `sample_rows` assume valid settings; the work is a rough
/// cost of one row, and of one sample, for `parallel_for`.
template <class S>
concept ExactDistribution = MapSolver<S> &&
    requires(const S& solver, const DistributionRows<float>& rows, const SampleRows<double>& draw) {
  { evaluate_work_ns(solver) } -> std::same_as<double>;
  { sample_work_ns(solver) } -> std::same_as<double>;
  evaluate_rows(solver, rows);
  sample_rows(solver, draw);
};

/// Declares both functions for float and double.
#define AIMLE_DECLARE_DISTRIBUTION(Solver)                                        \
  void evaluate_rows(const Solver& solver, const DistributionRows<float>& rows);  \
  void evaluate_rows(const Solver& solver, const DistributionRows<double>& rows); \
  void sample_rows(const Solver& solver, const SampleRows<float>& rows);          \
  void sample_rows(const Solver& solver, const SampleRows<double>& rows);

template <class T>
DistributionRows<T> slice(const DistributionRows<T>& rows, int64_t size, int64_t begin,
                          int64_t end) {
  const auto at = [&](auto* data, int64_t stride) {
    return data ? data + begin * stride : nullptr;
  };
  return {.count = end - begin,
          .scores = at(rows.scores, size),
          .mask = at(rows.mask, size),
          .k = at(rows.k, 1),
          .data = rows.data.from(begin),
          .v = at(rows.v, size),
          .status = at(rows.status, 1),
          .log_partition = at(rows.log_partition, 1),
          .marginals = at(rows.marginals, size),
          .covariance = at(rows.covariance, size)};
}

template <class T>
SampleRows<T> slice(const SampleRows<T>& rows, int64_t size, int64_t begin, int64_t end) {
  const auto at = [&](auto* data, int64_t stride) {
    return data ? data + begin * stride : nullptr;
  };
  return {.first = rows.first + begin,
          .count = end - begin,
          .samples = rows.samples,
          .scores = at(rows.scores, size),
          .mask = at(rows.mask, size),
          .k = at(rows.k, 1),
          .data = rows.data.from(begin),
          .key = rows.key,
          .status = at(rows.status, 1),
          .z = at(rows.z, rows.samples * size)};
}

/// Every row, on as many threads as are useful.
template <ExactDistribution S, class T>
void evaluate(const S& solver, const DistributionRows<T>& rows,
              const Executor& executor = sequential()) {
  solver.validate();
  parallel_for(executor, rows.count, evaluate_work_ns(solver), [&](int64_t begin, int64_t end) {
    evaluate_rows(solver, slice(rows, solver.size(), begin, end));
  });
}

template <ExactDistribution S, class T>
void sample(const S& solver, const SampleRows<T>& rows, const Executor& executor = sequential()) {
  solver.validate();
  const double work =
      evaluate_work_ns(solver) + sample_work_ns(solver) * static_cast<double>(rows.samples);
  parallel_for(executor, rows.count, work, [&](int64_t begin, int64_t end) {
    sample_rows(solver, slice(rows, solver.size(), begin, end));
  });
}

namespace detail {

/// Marks row i as invalid.
template <class T>
void refuse(const DistributionRows<T>& rows, int64_t size, int64_t i, Status status) {
  constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
  rows.status[i] = status;
  if (rows.log_partition) rows.log_partition[i] = kNaN;
  if (rows.marginals) std::fill_n(rows.marginals + i * size, size, kNaN);
  if (rows.covariance) std::fill_n(rows.covariance + i * size, size, kNaN);
}

template <class T>
void refuse(const SampleRows<T>& rows, int64_t size, int64_t i, Status status) {
  rows.status[i] = status;
  std::fill_n(rows.z + i * rows.samples * size, rows.samples * size,
              std::numeric_limits<T>::quiet_NaN());
}

/// Row i of rows of `size` entries; null if there are none.
template <class T>
T* row_of(T* data, int64_t size, int64_t i) {
  return data == nullptr ? nullptr : data + i * size;
}

/// Calls body(i) for every row for which read(scores, mask, i) is kOk, and refuses the others.
template <class Rows, class Read, class Body>
void for_each_row(const Rows& rows, int64_t size, const Read& read, const Body& body) {
  for (int64_t i = 0; i < rows.count; ++i) {
    const Status status = read(rows.scores + i * size, row_of(rows.mask, size, i), i);
    if (status != Status::kOk) {
      refuse(rows, size, i, status);
      continue;
    }
    rows.status[i] = status;
    body(i);
  }
}

}  // namespace detail
}  // namespace aimle
