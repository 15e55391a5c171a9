#include "aimle/map/topk.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "aimle/base/check.h"
#include "aimle/base/isa.h"
#include "aimle/map/declaration.h"
#include "aimle/map/each_row.h"
#include "aimle/map/topk_avx2.h"
#include "aimle/map/topk_short.h"

namespace aimle {
namespace {

template <class T>
inline constexpr T kMasked = -std::numeric_limits<T>::infinity();

/// An integer as wide as T, so that comparisons and counts share their vector lanes.
template <class T>
using Count = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

/// Up to this many numbers are ranked by comparing all pairs.
constexpr int64_t kFew = 32;
/// The group maxima are taken over this many leading entries; the rest is compared with the
/// resulting bound.
constexpr int64_t kHead = 4096;
constexpr int64_t kGroups = 32;
/// Entries tested at once against the bound.
constexpr int64_t kBlock = 16;

/// How many of the values satisfy the predicate.
template <class T, class Predicate>
int64_t count_where(const T* values, int64_t count, const Predicate& predicate) {
  constexpr int64_t kPart = 4096;
  int64_t sum = 0;
  for (int64_t begin = 0; begin < count; begin += kPart) {
    const int64_t end = std::min(count, begin + kPart);
    Count<T> found = 0;
    for (int64_t j = begin; j < end; ++j) found += predicate(values[j]);
    sum += found;
  }
  return sum;
}

/// The k-th largest: the smallest of those that fewer than k exceed. count <= kFew.
template <class T>
T kth_of_few(const T* values, int64_t count, int64_t k) {
  Count<T> above[kFew] = {};
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < count; ++j) above[j] += values[i] > values[j];
  }
  T least = std::numeric_limits<T>::infinity();
  for (int64_t j = 0; j < count; ++j) {
    const T candidate = above[j] < k ? values[j] : least;
    least = candidate < least ? candidate : least;
  }
  return least;
}

/// The k-th largest of `count` values, which are overwritten. Quickselect without unpredictable
/// branches; the pivot is the median of 15 spread-out entries.
template <class T>
T kth_largest(T* values, int64_t count, int64_t k) {
  for (uint64_t round = 0; count > kFew; ++round) {
    T sample[15];
    for (uint64_t i = 0; i < 15; ++i) {
      const uint64_t random = (15 * round + i + 1) * 0x9e3779b97f4a7c15u >> 32;
      sample[i] = values[random * static_cast<uint64_t>(count) >> 32];
    }
    const T pivot = kth_of_few(sample, 15, 8);
    const int64_t larger = count_where(values, count, [=](T v) { return v > pivot; });
    const int64_t reaching = count_where(values, count, [=](T v) { return v >= pivot; });
    if (larger < k && k <= reaching) return pivot;
    int64_t kept = 0;
    for (int64_t j = 0; j < count; ++j) {
      const T v = values[j];
      values[kept] = v;
      kept += k <= larger ? v > pivot : v < pivot;
    }
    count = kept;
    if (k > reaching) k -= reaching;
  }
  return kth_of_few(values, count, k);
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

/// Solves rows of n > kShortRow entries one after the other.
template <class T>
class RowSolver {
 public:
  explicit RowSolver(int64_t n) : n_(n) {}

  Status solve(const T* scores, const bool* mask, int64_t k, T* z) {
    if (k < 0 || k > n_) return Status::kBadK;
    if (mask != nullptr) scores = unmasked(scores, mask);
    if (has_nan(scores)) return Status::kNaN;
    const T threshold = threshold_of(scores, k);
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
    return count_where(scores, n_, [](T x) { return x != x; }) != 0;
  }

  /// -inf if fewer than k scores exceed it, +inf if k = 0.
  ///
  /// Keeps the candidates so far; whenever there are many, all except the k largest are dropped,
  /// and further candidates have to exceed the smallest of those.
  T threshold_of(const T* scores, int64_t k) {
    if (k == 0) return std::numeric_limits<T>::infinity();
    T bound = kMasked<T>;
    if (2 * k <= kGroups) {
      bound = bound_of_groups(scores, std::min(n_, kHead), k);
      bound = std::nextafter(bound, kMasked<T>);
    }
    const int64_t limit = 3 * k + 128;
    candidates_.resize(static_cast<size_t>(std::min(n_, limit) + kBlock));
    T* const candidates = candidates_.data();
    int64_t count = 0;
    for (int64_t begin = 0; begin < n_; begin += kBlock) {
      const int64_t end = std::min(n_, begin + kBlock);
      if (end - begin == kBlock) {
        Count<T> any = 0;
        for (int64_t l = 0; l < kBlock; ++l) any |= scores[begin + l] > bound;
        if (any == 0) continue;
      }
      for (int64_t j = begin; j < end; ++j) {
        candidates[count] = scores[j];
        count += scores[j] > bound;
      }
      if (count >= limit) {
        bound = thin_out(count, k);
        count = k;
      }
    }
    return count < k ? kMasked<T> : kth_largest(candidates, count, k);
  }

  /// Keeps the k largest candidates and returns the smallest of them.
  T thin_out(int64_t count, int64_t k) {
    selecting_.assign(candidates_.begin(), candidates_.begin() + count);
    const T kth = kth_largest(selecting_.data(), count, k);
    int64_t kept = 0;
    for (int64_t j = 0; j < count; ++j) {
      const T candidate = candidates_[j];
      candidates_[kept] = candidate;
      kept += candidate > kth;
    }
    std::fill(candidates_.begin() + kept, candidates_.begin() + k, kth);
    return kth;
  }

  /// Chooses everything that reaches the threshold, but only the first of those that equal it.
  void choose(T threshold, const T* scores, int64_t k, T* z) const {
    for (int64_t j = 0; j < n_; ++j) z[j] = scores[j] >= threshold ? T(1) : T(0);
    int64_t surplus = count_where(scores, n_, [=](T x) { return x >= threshold; }) - k;
    int64_t end = n_;
    for (; surplus > 0 && end >= kBlock; end -= kBlock) {
      const T* block = scores + end - kBlock;
      const int64_t ties = count_where(block, kBlock, [=](T x) { return x == threshold; });
      if (ties > surplus) break;
      for (int64_t l = 0; l < kBlock; ++l) z[end - kBlock + l] = block[l] > threshold ? T(1) : T(0);
      surplus -= ties;
    }
    for (int64_t j = end - 1; surplus > 0; --j) {
      if (scores[j] == threshold) {
        z[j] = T(0);
        --surplus;
      }
    }
  }

  int64_t n_;
  std::vector<T> row_;
  std::vector<T> candidates_;
  std::vector<T> selecting_;
};

/// 16-byte vectors, available on every x86-64 and ARM64.
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
  detail::solve_each_row(rows, n, [&](const T* scores, const bool* mask, T* z, int64_t i) {
    return solver_of_rows.solve(scores, mask, rows.k ? rows.k[i] : solver.k, z);
  });
}

}  // namespace

void TopK::validate() const {
  AIMLE_CHECK(n >= 1, "[aimle::topk] expected n >= 1 but got n=", n);
  AIMLE_CHECK(0 <= k && k <= n, "[aimle::topk] expected 0 <= k <= n but got k=", k, ", n=", n);
}

void TopK::declare(Declaration<TopK>& solver) {
  solver.summary = "the k largest scores";
  solver.required("k", &TopK::k, {.min = 0}, "number of chosen entries");
}

void solve_rows(const TopK& solver, const Rows<float>& rows) {
  if constexpr (kBuiltWithAvx2) {
    if (isa() >= Isa::kAvx2) {
      if (solver.k == 1 && rows.k == nullptr && solver.n >= 8) {
        return avx2::solve_rows(Argmax{.n = solver.n}, rows);
      }
      return solver.n <= kShortRow ? avx2::solve_short_rows(solver, rows)
                                   : avx2::solve_long_rows(solver, rows);
    }
  }
  solve_portable(solver, rows);
}

void solve_rows(const TopK& solver, const Rows<double>& rows) {
  if constexpr (kBuiltWithAvx2) {
    if (isa() >= Isa::kAvx2 && solver.n <= kShortRow) {
      return avx2::solve_short_rows(solver, rows);
    }
  }
  solve_portable(solver, rows);
}

}  // namespace aimle
