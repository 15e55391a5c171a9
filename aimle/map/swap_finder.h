// The score at which an entry enters a solution, and the resulting change, for the `thresholds`
// estimator (estimate/thresholds.h).
//
// With all scores fixed except x_j, the best solution with j is always the same, and so is the best
// one without: the former is the solution if x_j exceeds a threshold, the latter otherwise. A
// finder computes the thresholds, and the difference of <d, z> between the two, for all entries of
// a row at once. Solvers that choose the k best entries do not need one (Swaps::kEntry); other
// solvers have thresholds if their struct has
//
//   template <class T> std::unique_ptr<SwapFinder<T>> swap_finder() const;   T: float and double
#pragma once

#include <cstdint>

namespace aimle {

/// A row after solving, with or without a solution.
template <class T>
struct SwapRow {
  const T* x;           // [n] its scores
  const bool* mask;     // [n] or null
  const uint8_t* bits;  // its solution, packed; zeros if there is none
  const T* d;           // [n]
};

/// Space for the results of consecutive entries.
struct SwapPart {
  double* threshold;
  double* difference;
};

/// Takes the results of a row in parts, the first entries first, so that they can be used while they
/// are in the cache.
class SwapParts {
 public:
  virtual ~SwapParts() = default;

  /// Space for the next `count` entries. The part before it is complete.
  virtual SwapPart next(int64_t count) = 0;
};

/// Used by one thread; may keep memory between rows.
template <class T>
class SwapFinder {
 public:
  virtual ~SwapFinder() = default;

  /// Whether x must include its noise; otherwise theta is passed instead.
  virtual bool reads_noise() const { return true; }

  /// For all n entries, threshold_j, not finite if j is always in or always out (arbitrary if j is
  /// masked), and difference_j = <d, z with j> - <d, z without j>. Returns false if the row has no
  /// solution; its entries are then undefined.
  virtual bool find(const SwapRow<T>& row, double* threshold, double* difference) = 0;

  /// The most entries in a part, if there is find_parts, otherwise 0.
  virtual int64_t entries_at_once() const { return 0; }

  /// `find` in parts, which together are the row. Asks for none if the row has no solution.
  virtual bool find_parts(const SwapRow<T>& /*row*/, SwapParts& /*parts*/) { return false; }

  /// The number of rows that a call of find_rows should have.
  virtual int64_t rows_at_once() const { return 1; }

  /// `find` for rows whose results are `stride` numbers apart; found[i] is that of row i.
  virtual void find_rows(const SwapRow<T>* rows, int64_t count, int64_t stride, double* threshold,
                         double* difference, bool* found) {
    for (int64_t i = 0; i < count; ++i) {
      found[i] = find(rows[i], threshold + i * stride, difference + i * stride);
    }
  }
};

}  // namespace aimle
