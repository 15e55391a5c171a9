// Sums in a fixed order.
//
// The step size determines which solutions change, so one unit in the last place of a norm can
// change a solution. Every sum that it depends on therefore has the same order on every machine: 32
// strided partial sums in float64 (term j goes to partial j mod 32), then a tree of halves (16, 8,
// 4, 2, 1). On a GPU that is one warp: one lane per partial, then shuffles.
#pragma once

#include <cstdint>

namespace aimle {

inline constexpr int kSumLanes = 32;

/// The sum of the partial sums, which are overwritten: the tree of halves.
[[gnu::always_inline]] inline double fold(double* partial) {
  for (int half = kSumLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) partial[lane] += partial[lane + half];
  }
  return partial[0];
}

/// sum over j in [0, n) of term(j), in the fixed order.
template <class Term>
[[gnu::always_inline]] inline double fixed_sum(int64_t n, Term term) {
  if (n == 1) return term(0);  // adding zeros changes nothing
  double partial[kSumLanes] = {};
  int64_t j = 0;
  for (; j + kSumLanes <= n; j += kSumLanes) {
    for (int lane = 0; lane < kSumLanes; ++lane) partial[lane] += term(j + lane);
  }
  const auto rest = static_cast<int>(n - j);
  for (int lane = 0; lane < rest; ++lane) partial[lane] += term(j + lane);
  return fold(partial);
}

}  // namespace aimle
