// The loops over the entries of one row for thresholds, for the instruction set in use.
//
// The same source is compiled for every instruction set (threshold_loops.h) and gives the same bits
// on each. Private to aimle/estimate.
#pragma once

#include <cstdint>

#include "aimle/estimate/fixed_sum.h"
#include "aimle/estimate/target.h"

namespace aimle {

/// Yes and no per entry: all ones, or zero.
using Flag = uint64_t;

/// Of a row in which the best scores are chosen: who would have to leave, and who would enter next.
/// -1 if there is none.
struct Rivals {
  int64_t worst_in = -1;  // the last of equals
  int64_t best_out = -1;  // the first of equals
};

/// How a row meets its two rivals: the threshold and the gain of the partner, for entries that are
/// in and for those that are out. Where it is not `met`, an entry has no weight.
struct Meeting {
  double threshold = 0.0;
  double gain = 0.0;
  bool met = false;
};

/// What the weights are taken of; n entries each, and room for kThresholdPadding more.
struct WeightRow {
  double* u;           // (t - theta) / tau
  double* difference;  // d_j - d_m
  Flag* in;
  Flag* valid;  // where not, there is no weight; u and difference are then zero
};
inline constexpr int64_t kThresholdPadding = 8;

/// What the cap took, as counts of weights and sums over entries; entry j of every sample goes to
/// partial sum j mod 32 (fixed_sum.h).
struct CappedPartials {
  int64_t weights = 0;
  int64_t capped = 0;
  double mass[kSumLanes] = {};  // of w |d_j - d_m| without the cap
  double lost[kSumLanes] = {};  // of which the cap took
};

/// The same, summed.
struct CappedTotals {
  int64_t weights = 0;
  int64_t capped = 0;
  double mass = 0.0;
  double lost = 0.0;
};

template <class T>
struct ThresholdKernels {
  /// free_j: is j allowed and not infinite? Returns how many are.
  int64_t (*find_free)(const T* theta, const bool* mask, int64_t n, Flag* free);

  /// in_j = bit j of a packed row; writes whole groups of 8. Returns how many are set.
  int64_t (*unpack)(const uint8_t* bits, int64_t n, Flag* in);

  Rivals (*rivals)(const T* x, const bool* mask, const Flag* in, int64_t n);

  /// Fills u, difference and valid of a row whose `in` is set. `free` may be null: all are.
  void (*meet)(const Meeting& in, const Meeting& out, const T* theta, double sign, double tau,
               const T* d, const Flag* free, int64_t n, const WeightRow& row);

  /// sum_j += factor min(w_j, max_weight) difference_j
  void (*weigh)(const ThresholdTarget& target, const WeightRow& row, int64_t n,
                CappedPartials& capped, double* sum);

  /// Sums up the partial sums and starts them again.
  CappedTotals (*drain)(CappedPartials& capped);

  /// out_j = scale (sum_j - their mean) over the free entries, 0 elsewhere; sum_j = 0. Returns how
  /// many free results are zero.
  int64_t (*center)(double* sum, const Flag* free, int64_t free_count, double scale, int64_t n,
                    T* out);
};

template <class T>
const ThresholdKernels<T>& threshold_kernels();

}  // namespace aimle
