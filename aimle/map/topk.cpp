#include "aimle/map/topk.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#include "aimle/base/check.h"
#include "aimle/base/isa.h"
#include "aimle/map/topk_avx2.h"
#include "aimle/map/topk_short.h"

namespace aimle {
namespace {

template <class T>
inline constexpr T kMasked = -std::numeric_limits<T>::infinity();

/// An integer as wide as T, so that comparisons and counts share their vector lanes.
template <class T>
using Count = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

/// Up to so many numbers are ranked by comparing all pairs.
constexpr int64_t kFew = 48;
/// The group maxima are taken over this many leading entries; the rest is held against the bound
/// that they gave.
constexpr int64_t kHead = 4096;
constexpr int64_t kGroups = 32;

/// The k-th largest: the least of those that fewer than k exceed. count <= kFew.
///
/// Written in groups of kLanes, without branches, for the compiler to make vectors of.
template <class T>
T kth_of_few(const T* values, int64_t count, int64_t k) {
  constexpr int64_t kLanes = 8;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  T least[kLanes];
  std::fill_n(least, kLanes, kInfinity);
  for (int64_t begin = 0; begin < count; begin += kLanes) {
    T group[kLanes];
    Count<T> above[kLanes] = {};
    for (int64_t l = 0; l < kLanes; ++l)
      group[l] = begin + l < count ? values[begin + l] : kMasked<T>;
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t l = 0; l < kLanes; ++l) above[l] += values[i] > group[l];
    }
    for (int64_t l = 0; l < kLanes; ++l) {
      const T candidate = above[l] < k ? group[l] : kInfinity;
      least[l] = candidate < least[l] ? candidate : least[l];
    }
  }
  return *std::min_element(least, least + kLanes);
}

/// The k-th largest of the maxima of disjoint groups, which at least k scores reach.
template <class T>
T bound_of_groups(const T* scores, int64_t n, int64_t k) {
  T largest[kGroups];
  std::fill_n(largest, kGroups, kMasked<T>);
  for (int64_t j = 0; j + kGroups <= n; j += kGroups) {
    for (int64_t g = 0; g < kGroups; ++g) {
      largest[g] = largest[g] < scores[j + g] ? scores[j + g] : largest[g];
    }
  }
  return kth_of_few(largest, kGroups, k);
}

/// Solves rows of length n one after the other.
template <class T>
class RowSolver {
 public:
  explicit RowSolver(int64_t n) : n_(n) {}

  Status solve(const T* scores, const bool* mask, int64_t k, T* z) {
    if (k < 0 || k > n_) return Status::kBadK;
    if (mask != nullptr) scores = unmasked(scores, mask);
    if (has_nan(scores)) return Status::kNaN;
    const T threshold = kth_largest(scores, k);
    if (threshold == kMasked<T>) return Status::kTooFewEntries;
    choose(threshold, scores, k, z);
    return Status::kOk;
  }

 private:
  const T* unmasked(const T* scores, const bool* mask) {
    row_.resize(static_cast<size_t>(n_));
    for (int64_t j = 0; j < n_; ++j) row_[j] = mask[j] ? scores[j] : kMasked<T>;
    return row_.data();
  }

  bool has_nan(const T* scores) const {
    Count<T> nan = 0;
    for (int64_t j = 0; j < n_; ++j) nan |= scores[j] != scores[j];
    return nan != 0;
  }

  /// -inf if fewer than k scores exceed it, +inf if k = 0.
  ///
  /// Keeps the candidates seen so far; whenever they have become many, all but the k largest are
  /// dropped, and from then on a candidate has to exceed the least of those.
  T kth_largest(const T* scores, int64_t k) {
    if (k == 0) return std::numeric_limits<T>::infinity();
    if (n_ <= kFew) return kth_of_few(scores, n_, k);
    T bound = kMasked<T>;
    if (2 * k <= kGroups) {
      bound = bound_of_groups(scores, std::min(n_, kHead), k);
      bound = std::nextafter(bound, kMasked<T>);
    }
    const auto capacity = static_cast<size_t>(std::min(n_, 3 * k + 128));
    candidates_.resize(capacity);
    size_t count = 0;
    for (int64_t j = 0; j < n_; ++j) {
      if (scores[j] > bound) {
        candidates_[count++] = scores[j];
        if (count == capacity) {
          bound = kth_candidate(count, k);
          count = static_cast<size_t>(k);
        }
      }
    }
    if (static_cast<int64_t>(count) < k) return kMasked<T>;
    return static_cast<int64_t>(count) <= kFew
               ? kth_of_few(candidates_.data(), static_cast<int64_t>(count), k)
               : kth_candidate(count, k);
  }

  T kth_candidate(size_t count, int64_t k) {
    const auto begin = candidates_.begin();
    const auto kth = begin + (k - 1);
    std::nth_element(begin, kth, begin + static_cast<ptrdiff_t>(count), std::greater<>());
    return *kth;
  }

  /// Everything that reaches the threshold, but of those that equal it only the first.
  void choose(T threshold, const T* scores, int64_t k, T* z) const {
    int64_t surplus = -k;
    for (int64_t begin = 0; begin < n_; begin += kHead) {
      const int64_t end = std::min(n_, begin + kHead);
      Count<T> reach = 0;
      for (int64_t j = begin; j < end; ++j) {
        const bool reaches = scores[j] >= threshold;
        z[j] = reaches ? T(1) : T(0);
        reach += reaches;
      }
      surplus += reach;
    }
    for (int64_t j = n_ - 1; surplus > 0; --j) {
      if (scores[j] == threshold) {
        z[j] = T(0);
        --surplus;
      }
    }
  }

  int64_t n_;
  std::vector<T> row_;
  std::vector<T> candidates_;
};

/// 16-byte vectors: what every x86-64 and ARM64 has.
struct Machine {
  static constexpr int kVectorBytes = 16;

  template <class T, class Lanes>
  [[gnu::always_inline]] static void load_columns(const T* rows, int64_t n, Lanes* columns) {
    for (int64_t j = 0; j < n; ++j) {
      Lanes column;
      for (int64_t r = 0; r < static_cast<int64_t>(sizeof(Lanes) / sizeof(T)); ++r) {
        column[r] = rows[r * n + j];
      }
      columns[j] = column;
    }
  }
};

template <class T>
void solve_portable(const TopK& solver, const Rows<T>& rows) {
  const int64_t n = solver.n;
  if (n <= kShortRow) return solve_short_rows<Machine>(solver, rows);
  RowSolver<T> solver_of_rows(n);
  for (int64_t i = 0; i < rows.count; ++i) {
    T* z = rows.z + i * n;
    rows.status[i] =
        solver_of_rows.solve(rows.scores + i * n, rows.mask ? rows.mask + i * n : nullptr,
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
      return solver.n <= kShortRow ? avx2::solve_short_rows(solver, rows)
                                   : avx2::solve_long_rows(solver, rows);
    }
  }
  solve_portable(solver, rows);
}

void solve_rows(const TopK& solver, const Rows<double>& rows) {
  if constexpr (kBuiltWithAvx2) {
    if (isa() == Isa::kAvx2 && solver.n <= kShortRow) {
      return avx2::solve_short_rows(solver, rows);
    }
  }
  solve_portable(solver, rows);
}

}  // namespace aimle
