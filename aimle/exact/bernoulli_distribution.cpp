#include "aimle/exact/bernoulli_distribution.h"

#include <cmath>
#include <vector>

#include "aimle/base/check.h"
#include "aimle/exact/define_distribution.h"
#include "aimle/exact/enumerate.h"
#include "aimle/exact/uniform.h"

namespace aimle {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// The probabilities of one row; false, and the row is marked, if a score is NaN or +inf.
template <class Rows>
bool read_row(const Rows& rows, int64_t i, std::vector<CoinFlip>& flips) {
  const auto n = static_cast<int64_t>(flips.size());
  for (int64_t j = 0; j < n; ++j) {
    const bool allowed = rows.mask == nullptr || rows.mask[i * n + j];
    const double x = allowed ? static_cast<double>(rows.scores[i * n + j]) : -kInf;
    if (!(x < kInf)) {
      detail::refuse(rows, n, i, Status::kNaN);
      return false;
    }
    flips[static_cast<size_t>(j)] = coin_flip(x);
  }
  rows.status[i] = Status::kOk;
  return true;
}

template <class T>
void evaluate_all(const Bernoulli& solver, const DistributionRows<T>& rows) {
  const int64_t n = solver.n;
  std::vector<CoinFlip> flips(static_cast<size_t>(n));
  for (int64_t i = 0; i < rows.count; ++i) {
    if (!read_row(rows, i, flips)) continue;
    double log_z = 0;
    for (int64_t j = 0; j < n; ++j) {
      const CoinFlip& flip = flips[static_cast<size_t>(j)];
      const int64_t at = i * n + j;
      log_z += flip.log_z;
      if (rows.marginals) rows.marginals[at] = static_cast<T>(flip.on);
      if (!rows.covariance) continue;
      const double variance = flip.on * flip.off;
      rows.covariance[at] =
          static_cast<T>(variance > 0 ? variance * static_cast<double>(rows.v[at]) : 0.0);
    }
    if (rows.log_partition) rows.log_partition[i] = static_cast<T>(log_z);
  }
}

template <class T>
void sample_all(const Bernoulli& solver, const SampleRows<T>& rows) {
  const int64_t n = solver.n;
  std::vector<CoinFlip> flips(static_cast<size_t>(n));
  for (int64_t i = 0; i < rows.count; ++i) {
    if (!read_row(rows, i, flips)) continue;
    for (int64_t s = 0; s < rows.samples; ++s) {
      T* const z = rows.z + (i * rows.samples + s) * n;
      for (int64_t j = 0; j < n; ++j) {
        const double u = uniform(rows.key, rows.first + i, s, j);
        z[j] = u < flips[static_cast<size_t>(j)].on ? T(1) : T(0);
      }
    }
  }
}

}  // namespace

double Bernoulli::structure_count() const { return std::exp2(static_cast<double>(n)); }

std::vector<uint8_t> Bernoulli::structures() const {
  validate();
  AIMLE_CHECK(structure_count() <= static_cast<double>(kMaxStructures),
              "[aimle::enumerate] expected at most ", kMaxStructures,
              " structures but there are more for n=", n);
  std::vector<uint8_t> all;
  for (int64_t s = 0; s < int64_t{1} << n; ++s) {
    for (int64_t j = n - 1; j >= 0; --j) all.push_back(s >> j & 1);
  }
  return all;
}

AIMLE_DEFINE_DISTRIBUTION(Bernoulli)

}  // namespace aimle
