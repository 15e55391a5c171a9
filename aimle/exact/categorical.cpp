#include "aimle/exact/categorical.h"

#include <cmath>
#include <vector>

#include "aimle/exact/categorical_row.h"
#include "aimle/exact/define_distribution.h"
#include "aimle/map/one_thread.h"

namespace aimle {
namespace {

/// Calls body(thread, i, row, weights) for every valid row.
template <class Rows, class Body>
void for_each_valid(int64_t n, const Rows& rows, const Body& body) {
  detail::OneThread thread;
  std::vector<double> weights(static_cast<size_t>(n));
  exact_row::CategoricalRow row{};
  detail::for_each_row(
      rows, n,
      [&](const auto* scores, const bool* mask, int64_t) {
        row = exact_row::read_weights(thread, n, scores, mask, weights.data());
        return row.status;
      },
      [&](int64_t i) { body(thread, i, row, weights.data()); });
}

template <class T>
void evaluate_all(const Argmax& solver, const DistributionRows<T>& rows) {
  const int64_t n = solver.n;
  for_each_valid(n, rows, [&](auto& thread, int64_t i, const auto& row, const double* weights) {
    if (rows.log_partition) {
      rows.log_partition[i] = static_cast<T>(row.largest + std::log(row.sum));
    }
    exact_row::evaluate_categorical(thread, n, row, weights, detail::row_of(rows.v, n, i),
                                    detail::row_of(rows.marginals, n, i),
                                    detail::row_of(rows.covariance, n, i));
  });
}

template <class T>
void sample_all(const Argmax& solver, const SampleRows<T>& rows) {
  const int64_t n = solver.n;
  for_each_valid(n, rows, [&](auto& thread, int64_t i, const auto& row, const double* weights) {
    exact_row::sample_categorical(thread, n, row, weights, rows.key, rows.first + i, rows.samples,
                                  rows.z + i * rows.samples * n);
  });
}

}  // namespace

AIMLE_DEFINE_DISTRIBUTION(Argmax)

}  // namespace aimle
