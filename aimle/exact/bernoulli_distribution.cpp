#include "aimle/exact/bernoulli_distribution.h"

#include <cmath>
#include <vector>

#include "aimle/exact/define_distribution.h"
#include "aimle/exact/enumerate.h"
#include "aimle/exact/masked_scores.h"
#include "aimle/exact/uniform.h"

namespace aimle {
namespace {

/// Calls body(probabilities, i) for every row i without NaN or +inf.
template <class Rows, class Body>
void for_each_valid(int64_t n, const Rows& rows, const Body& body) {
  std::vector<CoinFlip> flips(static_cast<size_t>(n));
  detail::for_each_row(
      rows, n,
      [&](const auto* scores, const bool* mask, int64_t) {
        for (int64_t j = 0; j < n; ++j) {
          const double x = MaskedScores{scores, mask}(j);
          if (!(x < std::numeric_limits<double>::infinity())) return Status::kNaN;
          flips[static_cast<size_t>(j)] = coin_flip(x);
        }
        return Status::kOk;
      },
      [&](int64_t i) { body(flips, i); });
}

template <class T>
void evaluate_all(const Bernoulli& solver, const DistributionRows<T>& rows) {
  const int64_t n = solver.n;
  for_each_valid(n, rows, [&](const std::vector<CoinFlip>& flips, int64_t i) {
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
  });
}

template <class T>
void sample_all(const Bernoulli& solver, const SampleRows<T>& rows) {
  const int64_t n = solver.n;
  for_each_valid(n, rows, [&](const std::vector<CoinFlip>& flips, int64_t i) {
    for (int64_t s = 0; s < rows.samples; ++s) {
      T* const z = rows.z + (i * rows.samples + s) * n;
      for (int64_t j = 0; j < n; ++j) {
        const double u = uniform(rows.key, rows.first + i, s, j);
        z[j] = u < flips[static_cast<size_t>(j)].on ? T(1) : T(0);
      }
    }
  });
}

}  // namespace

double Bernoulli::structure_count() const { return std::exp2(static_cast<double>(n)); }

std::vector<uint8_t> Bernoulli::structures() const {
  validate();
  check_structure_count(structure_count(), "for n=", n);
  std::vector<uint8_t> all;
  for (int64_t s = 0; s < int64_t{1} << n; ++s) {
    for (int64_t j = n - 1; j >= 0; --j) all.push_back(s >> j & 1);
  }
  return all;
}

AIMLE_DEFINE_DISTRIBUTION(Bernoulli)

}  // namespace aimle
