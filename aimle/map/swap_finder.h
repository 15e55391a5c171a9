// At which score an entry enters a solution, and what changes then: what the `thresholds` estimator
// must know of a solver (estimate/thresholds.h).
//
// Hold all scores but x_j. Of the solutions with j the best one is always the same, and so is the
// best of those without: j is in where x_j exceeds a threshold, below which the other one is the
// solution. A finder tells thresholds, and how <d, z> differs between the two, for all entries of a
// row at once. Solvers whose solutions are the k best entries need none (Swaps::kEntry); another one
// has thresholds if its struct has
//
//   template <class T> std::unique_ptr<SwapFinder<T>> swap_finder() const;   T: float and double
#pragma once

#include <cstdint>

namespace aimle {

/// A row that was solved, or tried to.
template <class T>
struct SwapRow {
  const T* x;           // [n] its scores
  const bool* mask;     // [n] or null
  const uint8_t* bits;  // its solution, packed; zeros if there is none
  const T* d;           // [n]
};

/// Belongs to one thread, and may keep memory from row to row.
template <class T>
class SwapFinder {
 public:
  virtual ~SwapFinder() = default;

  /// Whether x need have its noise; otherwise theta is handed in its place.
  virtual bool reads_noise() const { return true; }

  /// For all n entries, threshold_j, not finite where j is always in or always out (anything where
  /// j is masked), and difference_j = <d, z with j> - <d, z without j>. False if the row has no
  /// solution; nothing is said of its entries then.
  virtual bool find(const SwapRow<T>& row, double* threshold, double* difference) = 0;
};

}  // namespace aimle
