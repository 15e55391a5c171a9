#include "aimle/map/topk.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "aimle/base/check.h"
#include "aimle/base/isa.h"
#include "aimle/map/topk_avx2.h"

namespace aimle {
namespace {

template <class T>
inline constexpr T kMasked = -std::numeric_limits<T>::infinity();

/// Up to this length counting ranks beats selecting.
constexpr int64_t kShortRow = 48;

template <class T>
class Solve {
 public:
  explicit Solve(int64_t n) : n_(n) {}

  Status row(const T* scores, const bool* mask, int64_t k, T* z) {
    if (k < 0 || k > n_) return Status::kBadK;
    if (mask != nullptr) scores = unmasked(scores, mask);
    bool any_nan = false;
    int64_t choosable = 0;
    for (int64_t j = 0; j < n_; ++j) {
      any_nan |= std::isnan(scores[j]);
      choosable += scores[j] > kMasked<T>;
    }
    if (any_nan) return Status::kNaN;
    if (choosable < k) return Status::kTooFewEntries;
    if (k == 0) {
      std::fill_n(z, n_, T(0));
    } else if (n_ <= kShortRow) {
      choose_by_rank(scores, k, z);
    } else {
      choose_above(kth_largest(scores, k), scores, k, z);
    }
    return Status::kOk;
  }

 private:
  const T* unmasked(const T* scores, const bool* mask) {
    row_.resize(static_cast<size_t>(n_));
    for (int64_t j = 0; j < n_; ++j) row_[j] = mask[j] ? scores[j] : kMasked<T>;
    return row_.data();
  }

  void choose_by_rank(const T* scores, int64_t k, T* z) const {
    for (int64_t j = 0; j < n_; ++j) {
      int rank = 0;
      for (int64_t i = 0; i < j; ++i) rank += scores[i] >= scores[j];
      for (int64_t i = j + 1; i < n_; ++i) rank += scores[i] > scores[j];
      z[j] = rank < k ? T(1) : T(0);
    }
  }

  /// Keeps the candidates seen so far; each time there are 2k of them the lower half is dropped,
  /// and from then on only what exceeds the k-th so far is a candidate.
  T kth_largest(const T* scores, int64_t k) {
    const auto capacity = static_cast<size_t>(std::min(n_, 2 * k + 32));
    const auto kth = [&] {
      std::nth_element(best_.begin(), best_.begin() + (k - 1), best_.end(), std::greater<>());
      best_.resize(static_cast<size_t>(k));
      return best_.back();
    };
    best_.clear();
    best_.reserve(capacity);
    T bound = kMasked<T>;
    for (int64_t j = 0; j < n_; ++j) {
      if (scores[j] > bound) {
        best_.push_back(scores[j]);
        if (best_.size() == capacity) bound = kth();
      }
    }
    return kth();
  }

  /// Everything above the threshold, and the first of those that equal it.
  void choose_above(T threshold, const T* scores, int64_t k, T* z) const {
    int64_t above = 0;
    for (int64_t j = 0; j < n_; ++j) above += scores[j] > threshold;
    int64_t ties = k - above;
    for (int64_t j = 0; j < n_; ++j) {
      const bool tie = scores[j] == threshold && ties > 0;
      ties -= tie;
      z[j] = scores[j] > threshold || tie ? T(1) : T(0);
    }
  }

  int64_t n_;
  std::vector<T> row_;
  std::vector<T> best_;
};

template <class T>
void solve_portable(const TopK& solver, const Rows<T>& rows) {
  const int64_t n = solver.n;
  Solve<T> solve(n);
  for (int64_t i = 0; i < rows.count; ++i) {
    T* z = rows.z + i * n;
    rows.status[i] = solve.row(rows.scores + i * n, rows.mask ? rows.mask + i * n : nullptr,
                               rows.k ? rows.k[i] : solver.k, z);
    if (rows.status[i] != Status::kOk) std::fill_n(z, n, std::numeric_limits<T>::quiet_NaN());
  }
}

}  // namespace

void TopK::validate() const {
  AIMLE_CHECK(n >= 1, "[aimle::topk] expected n >= 1 but got n=", n);
  AIMLE_CHECK(0 <= k && k <= n, "[aimle::topk] expected 0 <= k <= n but got k=", k, ", n=", n);
}

void solve_rows(const TopK& solver, const Rows<float>& rows) {
  if constexpr (kBuiltWithAvx2) {
    if (isa() == Isa::kAvx2) {
      return solver.n <= avx2::kShortRow ? avx2::solve_short_rows(solver, rows)
                                         : avx2::solve_long_rows(solver, rows);
    }
  }
  solve_portable(solver, rows);
}

void solve_rows(const TopK& solver, const Rows<double>& rows) { solve_portable(solver, rows); }

}  // namespace aimle
