#include "aimle/exact/categorical.h"

#include <cmath>
#include <vector>

#include "aimle/exact/categorical_row.h"
#include "aimle/map/one_thread.h"

namespace aimle {
namespace {

/// Calls body(i, row, weights) for every valid row.
template <class Rows, class Body>
void for_each_row(int64_t n, const Rows& rows, const Body& body) {
  detail::OneThread thread;
  std::vector<double> weights(static_cast<size_t>(n));
  for (int64_t i = 0; i < rows.count; ++i) {
    const bool* mask = rows.mask ? rows.mask + i * n : nullptr;
    const exact_row::CategoricalRow row =
        exact_row::read_weights(thread, n, rows.scores + i * n, mask, weights.data());
    if (row.status != Status::kOk) {
      detail::refuse(rows, n, i, row.status);
      continue;
    }
    rows.status[i] = row.status;
    body(thread, i, row, weights.data());
  }
}

template <class T>
void evaluate_all(const Argmax& solver, const DistributionRows<T>& rows) {
  const int64_t n = solver.n;
  const auto at = [&](auto* data, int64_t i) { return data ? data + i * n : nullptr; };
  for_each_row(n, rows, [&](auto& thread, int64_t i, const auto& row, const double* weights) {
    if (rows.log_partition) {
      rows.log_partition[i] = static_cast<T>(row.largest + std::log(row.sum));
    }
    exact_row::evaluate_categorical(thread, n, row, weights, at(rows.v, i), at(rows.marginals, i),
                                    at(rows.covariance, i));
  });
}

template <class T>
void sample_all(const Argmax& solver, const SampleRows<T>& rows) {
  const int64_t n = solver.n;
  for_each_row(n, rows, [&](auto& thread, int64_t i, const auto& row, const double* weights) {
    exact_row::sample_categorical(thread, n, row, weights, rows.key, rows.first + i, rows.samples,
                                  rows.z + i * rows.samples * n);
  });
}

}  // namespace

void evaluate_rows(const Argmax& solver, const DistributionRows<float>& rows) {
  evaluate_all(solver, rows);
}
void evaluate_rows(const Argmax& solver, const DistributionRows<double>& rows) {
  evaluate_all(solver, rows);
}
void sample_rows(const Argmax& solver, const SampleRows<float>& rows) { sample_all(solver, rows); }
void sample_rows(const Argmax& solver, const SampleRows<double>& rows) { sample_all(solver, rows); }

}  // namespace aimle
