#include "aimle/exact/categorical.h"

#include <cmath>
#include <vector>

#include "aimle/exact/uniform.h"

namespace aimle {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// exp(x - max x) of one row, 0 where nothing may be chosen, and their sum.
struct Weights {
  std::vector<double> w;
  double largest = -kInf;
  double sum = 0;

  explicit Weights(int64_t n) : w(static_cast<size_t>(n)) {}

  template <class T>
  Status read(const T* scores, const bool* mask) {
    const auto allowed = [&](size_t j) { return mask == nullptr || mask[j]; };
    largest = -kInf;
    for (size_t j = 0; j < w.size(); ++j) {
      w[j] = allowed(j) ? static_cast<double>(scores[j]) : -kInf;
      if (std::isnan(w[j]) || w[j] == kInf) return Status::kNaN;
      largest = std::max(largest, w[j]);
    }
    if (largest == -kInf) return Status::kTooFewEntries;
    sum = 0;
    for (double& value : w) sum += value = std::exp(value - largest);
    return Status::kOk;
  }
};

/// False if the row was refused.
template <class Rows>
bool read_row(const Rows& rows, int64_t i, Weights& weights) {
  const auto n = static_cast<int64_t>(weights.w.size());
  const Status status = weights.read(rows.scores + i * n, rows.mask ? rows.mask + i * n : nullptr);
  if (status != Status::kOk) {
    detail::refuse(rows, n, i, status);
    return false;
  }
  rows.status[i] = status;
  return true;
}

template <class T>
void evaluate_all(const Argmax& solver, const DistributionRows<T>& rows) {
  const int64_t n = solver.n;
  Weights weights(n);
  for (int64_t i = 0; i < rows.count; ++i) {
    if (!read_row(rows, i, weights)) continue;
    const auto mu = [&](int64_t j) { return weights.w[static_cast<size_t>(j)] / weights.sum; };
    if (rows.log_partition) {
      rows.log_partition[i] = static_cast<T>(weights.largest + std::log(weights.sum));
    }
    for (int64_t j = 0; rows.marginals && j < n; ++j) {
      rows.marginals[i * n + j] = static_cast<T>(mu(j));
    }
    if (!rows.covariance) continue;
    const T* v = rows.v + i * n;
    double mean = 0;
    for (int64_t j = 0; j < n; ++j) mean += mu(j) > 0 ? mu(j) * static_cast<double>(v[j]) : 0;
    for (int64_t j = 0; j < n; ++j) {
      rows.covariance[i * n + j] =
          static_cast<T>(mu(j) > 0 ? mu(j) * (static_cast<double>(v[j]) - mean) : 0);
    }
  }
}

template <class T>
void sample_all(const Argmax& solver, const SampleRows<T>& rows) {
  const int64_t n = solver.n;
  Weights weights(n);
  for (int64_t i = 0; i < rows.count; ++i) {
    if (!read_row(rows, i, weights)) continue;
    for (int64_t s = 0; s < rows.samples; ++s) {
      T* z = rows.z + (i * rows.samples + s) * n;
      std::fill_n(z, n, T{0});
      const double wanted = uniform(rows.key, rows.first + i, s, 0) * weights.sum;
      double before = 0;
      int64_t chosen = 0;  // the last entry of any weight, should rounding leave the sum short
      for (int64_t j = 0; j < n && before <= wanted; ++j) {
        const double w = weights.w[static_cast<size_t>(j)];
        if (w > 0) chosen = j;
        before += w;
      }
      z[chosen] = 1;
    }
  }
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
