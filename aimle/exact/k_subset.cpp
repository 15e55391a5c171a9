#include "aimle/exact/k_subset.h"

#include <limits>
#include <vector>

#include "aimle/exact/define_distribution.h"
#include "aimle/exact/k_subset_row.h"
#include "aimle/map/one_thread.h"

namespace aimle {
namespace {

using exact_row::Coins;
using exact_row::KSubsetScratch;
using Tables = KSubsetScratch::Tables;

/// One row, restricted to its choosable entries.
class PackedRow {
 public:
  explicit PackedRow(Tables tables) : tables_(tables) {}

  /// False, and the row is marked, if it has no distribution.
  template <class Rows>
  bool read(const Rows& rows, int64_t n, int64_t k, int64_t i) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    const int64_t begin = i * n;
    if (rows.k) k = rows.k[i];
    scores_.clear();
    index_.clear();
    for (int64_t j = 0; j < n; ++j) {
      const auto score = static_cast<double>(rows.scores[begin + j]);
      if ((rows.mask && !rows.mask[begin + j]) || score == -kInf) continue;
      scores_.push_back(score);
      index_.push_back(j);
    }
    const auto m = static_cast<int64_t>(scores_.size());
    Status status = k < 0 || k > n ? Status::kBadK : Status::kOk;
    if (status == Status::kOk) {
      const int64_t most = std::min(k, m);
      memory_.resize(static_cast<size_t>(KSubsetScratch::doubles(m, most, tables_)));
      scratch_ = KSubsetScratch::at(memory_.data(), m, most, tables_);
      // A k beyond the number of entries is an error of its own, after NaN, which takes precedence.
      coins_ = exact_row::read_coins(thread_, m, most, scores_.data(), nullptr, scratch_);
      status = coins_.status == Status::kOk && k > m ? Status::kTooFewEntries : coins_.status;
    }
    if (status != Status::kOk) {
      detail::refuse(rows, n, i, status);
      return false;
    }
    rows.status[i] = status;
    return true;
  }

  double log_partition() {
    const double log_p =
        coins_.certain ? 0.0 : exact_row::log_probability(thread_, coins_, scratch_);
    return coins_.log_scale + log_p;
  }

  /// To be called before `covariance`.
  void fill_marginals() { exact_row::fill_marginals(thread_, coins_, scratch_); }
  template <class T>
  void write_marginals(int64_t n, T* out) const {
    scatter(scratch_.mu, n, out);
  }

  template <class T>
  void write_covariance(int64_t n, const T* v, T* out) {
    v_.clear();
    for (const int64_t j : index_) v_.push_back(static_cast<double>(v[j]));
    exact_row::write_covariance(thread_, coins_, v_.data(), scratch_, scores_.data());
    scatter(scores_.data(), n, out);
  }

  template <class T>
  void sample(const SampleRows<T>& rows, int64_t n, int64_t i) {
    exact_row::sample_coins(
        thread_, coins_, scratch_, rows.key, rows.first + i, rows.samples, n,
        [this](int64_t j) { return index_[static_cast<size_t>(j)]; },
        rows.z + i * rows.samples * n);
  }

 private:
  template <class T>
  void scatter(const double* values, int64_t n, T* out) const {
    std::fill_n(out, n, T{0});
    for (size_t j = 0; j < index_.size(); ++j) out[index_[j]] = static_cast<T>(values[j]);
  }

  Tables tables_;
  detail::OneThread thread_;
  std::vector<double> scores_, v_, memory_;
  std::vector<int64_t> index_;
  KSubsetScratch scratch_{};
  Coins coins_{};
};

template <class T>
void evaluate_all(const TopK& solver, const DistributionRows<T>& rows) {
  const int64_t n = solver.n;
  PackedRow row(rows.covariance  ? Tables::kCovariance
                : rows.marginals ? Tables::kMarginals
                                 : Tables::kLogPartition);
  for (int64_t i = 0; i < rows.count; ++i) {
    if (!row.read(rows, n, solver.k, i)) continue;
    if (rows.log_partition) rows.log_partition[i] = static_cast<T>(row.log_partition());
    if (rows.marginals || rows.covariance) row.fill_marginals();
    if (rows.marginals) row.write_marginals(n, rows.marginals + i * n);
    if (rows.covariance) row.write_covariance(n, rows.v + i * n, rows.covariance + i * n);
  }
}

template <class T>
void sample_all(const TopK& solver, const SampleRows<T>& rows) {
  PackedRow row(Tables::kSample);
  for (int64_t i = 0; i < rows.count; ++i) {
    if (row.read(rows, solver.n, solver.k, i)) row.sample(rows, solver.n, i);
  }
}

}  // namespace

AIMLE_DEFINE_DISTRIBUTION(TopK)

}  // namespace aimle
