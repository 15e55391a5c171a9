// Sums of a row in the fixed order (fixed_sum.h), four lanes at a time. Included once per
// instruction set; private to the row and threshold kernels.
#pragma once

#include <cstdint>

#include "aimle/estimate/fixed_sum.h"

namespace aimle {
namespace {

// Four neighbouring partial sums; group g holds lanes 4g ... 4g + 3.
using Four = double __attribute__((vector_size(32)));
static_assert(kSumLanes == 32);

template <class T>
[[gnu::always_inline]] inline Four load_four(const T* x) {
  using Loaded [[gnu::vector_size(4 * sizeof(T))]] = T;
  Loaded loaded;
  __builtin_memcpy(&loaded, x, sizeof loaded);
  return __builtin_convertvector(loaded, Four);
}

/// x_j ... x_(j+3), and `fill` from n on.
template <class T>
[[gnu::always_inline]] inline Four load_or(const T* x, int64_t j, int64_t n, double fill) {
  if (j + 4 <= n) return load_four(x + j);
  Four v = {fill, fill, fill, fill};
  for (int i = 0; i < 3 && j + i < n; ++i) v[i] = static_cast<double>(x[j + i]);
  return v;
}

// The terms of a sum, four at a time; zeros, which change no sum, from n on.
struct Values {
  template <class T>
  [[gnu::always_inline]] Four operator()(const T* x, int64_t j, int64_t n) const {
    return load_or(x, j, n, 0.0);
  }
};

/// The sum of a row's terms, for rows of any length.
struct LongSum {
  /// The partial sums are separate variables, not an array, so that they stay in registers.
  template <class T, class Term>
  [[gnu::always_inline]] static double of(const T* x, int64_t n, Term term) {
    Four p0 = {}, p1 = {}, p2 = {}, p3 = {}, p4 = {}, p5 = {}, p6 = {}, p7 = {};
    for (int64_t j = 0; j < n; j += kSumLanes) {
      p0 += term(x, j, n);
      p1 += term(x, j + 4, n);
      p2 += term(x, j + 8, n);
      p3 += term(x, j + 12, n);
      p4 += term(x, j + 16, n);
      p5 += term(x, j + 20, n);
      p6 += term(x, j + 24, n);
      p7 += term(x, j + 28, n);
    }
    // The tree of fixed_sum.h: 16, 8 and 4 between the groups, then 2 and 1 within the last.
    const Four folded = ((p0 + p4) + (p2 + p6)) + ((p1 + p5) + (p3 + p7));
    return (folded[0] + folded[2]) + (folded[1] + folded[3]);
  }
};

}  // namespace
}  // namespace aimle
