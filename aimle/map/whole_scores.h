// Scores as whole numbers, for solvers that compare sums.
//
// A sum of floating-point numbers depends on the order of addition, and so do ties between sums.
// Solvers whose algorithms add and subtract scores in their own order first round every row, once,
// to multiples of
//
//   q = 2^(e - b),   2^(e - 1) <= largest |score| of the row < 2^e,
//
// and then calculate with score / q: whole numbers up to 2^b, stored in float64. b leaves enough
// bits for all sums that the solver forms, so that none is ever rounded: any algorithm, in any
// order, on any device gives the same result. A float32 score larger than 2^(24 - b) times the
// largest is already a multiple of q, and is not changed.
#pragma once

#include <cmath>
#include <cstdint>

#include "aimle/base/combine.h"
#include "aimle/base/host_device.h"

namespace aimle::detail {

/// The smallest b with 2^b >= n.
AIMLE_HD constexpr int bits_for(int64_t n) {
  int bits = 0;
  while ((int64_t{1} << bits) < n) ++bits;
  return bits;
}

/// 1 / q as two representable factors.
struct WholeScale {
  double first = 1;
  double second = 1;

  /// `largest`: the largest finite |score|. `bits`: b, at most 50.
  AIMLE_HD static WholeScale of(double largest, int bits) {
    if (largest == 0) return {};
    int exponent = 0;
    frexp(largest, &exponent);
    const int shift = bits - exponent;
    return {ldexp(1.0, shift / 2), ldexp(1.0, shift - shift / 2)};
  }

  /// A finite score divided by q, rounded to the nearest whole number, ties to even.
  AIMLE_HD double operator()(double score) const {
    constexpr double kRound = 0x1.8p+52;  // its last bit is worth one
    return (score * first * second + kRound) - kRound;
  }
};

/// Properties of the unmasked scores: of those that one thread has read, then of all.
struct SeenScores {
  double largest = 0;  // finite |score|
  bool nan = false;
  bool infinite = false;  // +inf

  AIMLE_EITHER void add(double x) {
    const double size = x < 0 ? -x : x;
    if (size < HUGE_VAL && size > largest) largest = size;
    nan |= x != x;
    infinite |= x == HUGE_VAL;
  }

  template <class Group>
  AIMLE_EITHER void combine(Group& group) {
    nan = group.any(nan);
    infinite = group.any(infinite);
    largest = group.reduce(largest, Higher{});
  }
};

}  // namespace aimle::detail
