// Top-k of short rows, several at a time: the kernel shared by all instruction sets.
//
// The rows are spread over the lanes of vectors. Each half of a row is sorted by a network, and the
// k-th largest of two sorted lists A, B is the maximum over i + j = k of min(A_i, B_j). Entries
// that reach it are chosen; if these are more than k, the last of those that equal it are removed.
//
// For inclusion in one source file per instruction set: everything has internal linkage, so that no
// file uses code of another. `Machine` defines the length of a vector, and how rows become columns:
//
//   struct Machine {
//     static constexpr int kVectorBytes;
//     /// columns[j][r] = rows[r * n + j] for all rows r of a vector's lanes and j < n
//     template <class T, class Lanes>
//     static void load_columns(const T* rows, int64_t n, Lanes* columns);
//   };
#pragma once

#include <cstdint>
#include <utility>

#include "aimle/map/sorting_network.h"
#include "aimle/map/topk.h"

namespace aimle {
namespace {

/// The longest row that counts as short.
inline constexpr int64_t kShortRow = 64;

/// Rows of n <= 2 * kHalf entries.
template <class T, class Machine, int kHalf>
class ShortRows {
 public:
  static void solve(const TopK& solver, const Rows<T>& rows) {
    const int64_t n = solver.n;
    for (int64_t i = 0; i < rows.count; i += kLanes) {
      const int64_t count = rows.count - i < kLanes ? rows.count - i : kLanes;
      const T* scores = rows.scores + i * n;
      T staged[kLanes * kShortRow];
      if (rows.mask != nullptr || count < kLanes) {
        const bool* mask = rows.mask != nullptr ? rows.mask + i * n : nullptr;
        for (int64_t j = 0; j < kLanes * n; ++j) {
          staged[j] = j < count * n && (mask == nullptr || mask[j]) ? scores[j] : kMasked;
        }
        scores = staged;
      }
      const ShortRows group(scores, n);
      if (rows.k == nullptr && count == kLanes && group.choose_all(solver.k, rows.z + i * n)) {
        for (int64_t r = 0; r < kLanes; ++r) rows.status[i + r] = Status::kOk;
        continue;
      }
      for (int64_t r = 0; r < count; ++r) {
        const int64_t k = rows.k != nullptr ? rows.k[i + r] : solver.k;
        rows.status[i + r] = group.choose_one(r, k, rows.z + (i + r) * n);
      }
    }
  }

 private:
  static constexpr int kLanes = Machine::kVectorBytes / static_cast<int>(sizeof(T));
  using Lanes [[gnu::vector_size(Machine::kVectorBytes)]] = T;
  using Unaligned
      [[gnu::vector_size(Machine::kVectorBytes), gnu::aligned(sizeof(T)), gnu::may_alias]] = T;
  using Mask = decltype(Lanes{} < Lanes{});

  static constexpr T kInfinity = static_cast<T>(__builtin_huge_val());
  static constexpr T kMasked = -kInfinity;
  static constexpr T kNaN = static_cast<T>(__builtin_nan(""));

  [[gnu::always_inline]] ShortRows(const T* scores, int64_t n) : scores_(scores), n_(n) {
    Lanes columns[2 * kHalf + kLanes];
    Machine::template load_columns<T>(scores, n, columns);
    for (int64_t j = n; j < 2 * kHalf; ++j) columns[j] = Lanes{} + kMasked;
    first_[0] = second_[0] = Lanes{} + kInfinity;
    nan_ = sort(columns, first_ + 1) | sort(columns + kHalf, second_ + 1);
  }

  /// Sorts lane by lane, largest first; returns which lanes contain a NaN.
  [[gnu::always_inline]] static Mask sort(const Lanes* columns, Lanes* sorted) {
    static constexpr Network<kHalf> network;
    Lanes v[kHalf];
    Mask nan{};
    for (int i = 0; i < kHalf; ++i) {
      v[i] = columns[i];
      nan |= v[i] != v[i];
    }
    [&]<int... I>(std::integer_sequence<int, I...>) {
      (exchange(v[network.low[I]], v[network.high[I]]), ...);
    }
    (std::make_integer_sequence<int, network.count>());
    for (int i = 0; i < kHalf; ++i) sorted[i] = v[i];
    return nan;
  }

  [[gnu::always_inline]] static void exchange(Lanes& a, Lanes& b) {
    const Lanes larger = a > b ? a : b;
    b = a > b ? b : a;
    a = larger;
  }

  [[gnu::always_inline]] Lanes kth_largest(int64_t k) const {
    Lanes best = Lanes{} + kMasked;
    for (int64_t i = k > kHalf ? k - kHalf : 0; i <= (k < kHalf ? k : kHalf); ++i) {
      const Lanes both = first_[i] < second_[k - i] ? first_[i] : second_[k - i];
      best = best > both ? best : both;
    }
    return best;
  }

  T kth_largest(int64_t k, int64_t row) const {
    T best = kMasked;
    for (int64_t i = k > kHalf ? k - kHalf : 0; i <= (k < kHalf ? k : kHalf); ++i) {
      const T a = first_[i][row];
      const T b = second_[k - i][row];
      const T both = a < b ? a : b;
      best = best > both ? best : both;
    }
    return best;
  }

  /// False, and nothing written, for special cases: NaN, too few entries, a tie at the threshold.
  [[gnu::always_inline]] bool choose_all(int64_t k, T* z) const {
    const Lanes threshold = kth_largest(k);
    const Lanes next = kth_largest(k + 1);
    const Mask care = nan_ | (threshold == next);  // too few entries: both are -inf
    for (int r = 0, any = 0; r < kLanes; ++r) {
      any |= care[r] != 0;
      if (r == kLanes - 1 && any != 0) return false;
    }
    for (int r = 0; r < kLanes; ++r) choose_above(scores_ + r * n_, threshold[r], z + r * n_);
    return true;
  }

  [[gnu::always_inline]] void choose_above(const T* scores, T threshold, T* z) const {
    if (n_ < kLanes) {
      for (int64_t j = 0; j < n_; ++j) z[j] = scores[j] >= threshold ? T(1) : T(0);
      return;
    }
    const Lanes t = Lanes{} + threshold;
    const auto choose = [&](int64_t j) {
      const Lanes v = *reinterpret_cast<const Unaligned*>(scores + j);
      *reinterpret_cast<Unaligned*>(z + j) = v >= t ? Lanes{} + T(1) : Lanes{};
    };
    for (int64_t j = 0; j + kLanes <= n_; j += kLanes) choose(j);
    choose(n_ - kLanes);
  }

  [[gnu::noinline]] Status choose_one(int64_t row, int64_t k, T* z) const {
    const T* scores = scores_ + row * n_;
    const Status status = k < 0 || k > n_                  ? Status::kBadK
                          : nan_[row] != 0                 ? Status::kNaN
                          : kth_largest(k, row) == kMasked ? Status::kTooFewEntries
                                                           : Status::kOk;
    if (status != Status::kOk) {
      for (int64_t j = 0; j < n_; ++j) z[j] = kNaN;
      return status;
    }
    const T threshold = kth_largest(k, row);
    choose_above(scores, threshold, z);
    int64_t surplus = -k;
    for (int64_t j = 0; j < n_; ++j) surplus += scores[j] >= threshold;
    for (int64_t j = n_ - 1; surplus > 0; --j) {
      if (scores[j] == threshold) {
        z[j] = T(0);
        --surplus;
      }
    }
    return status;
  }

  const T* scores_;
  int64_t n_;
  Mask nan_;
  // The sorted halves, largest first, each after a +inf.
  Lanes first_[kHalf + 1];
  Lanes second_[kHalf + 1];
};

/// n <= kShortRow.
template <class Machine, class T>
void solve_short_rows(const TopK& solver, const Rows<T>& rows) {
  if (solver.n <= 8) return ShortRows<T, Machine, 4>::solve(solver, rows);
  if (solver.n <= 12) return ShortRows<T, Machine, 6>::solve(solver, rows);
  if (solver.n <= 16) return ShortRows<T, Machine, 8>::solve(solver, rows);
  if (solver.n <= 20) return ShortRows<T, Machine, 10>::solve(solver, rows);
  if (solver.n <= 24) return ShortRows<T, Machine, 12>::solve(solver, rows);
  if (solver.n <= 32) return ShortRows<T, Machine, 16>::solve(solver, rows);
  if (solver.n <= 48) return ShortRows<T, Machine, 24>::solve(solver, rows);
  return ShortRows<T, Machine, 32>::solve(solver, rows);
}

}  // namespace
}  // namespace aimle
