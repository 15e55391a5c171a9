// Compacts the entries of rows that are in, and expands them again; included once per instruction
// set. Private to threshold_loops.h.
#pragma once

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "aimle/estimate/threshold_kernels.h"
#include "aimle/estimate/threshold_lanes.h"

namespace aimle {
namespace {

inline int64_t count_in(const uint8_t* bits, int64_t n) {
  int64_t count = 0;
  for (int64_t byte = 0; 8 * byte < n; ++byte) count += __builtin_popcount(bits[byte]);
  return count;
}

/// Calls visit(place, bits) for every eight entries of the rows, and visit_four for the rest of a
/// row.
template <class Visit, class VisitFour>
[[gnu::always_inline]] inline void for_each_byte(const SolutionRows& rows, Visit visit,
                                                 VisitFour visit_four) {
  const uint8_t* bits = rows.bits;
  for (int64_t row = 0; row < rows.count * rows.stride; row += rows.stride) {
    for (int64_t j = 0; j + 8 <= rows.stride; j += 8) visit(row + j, *bits++);
    if (rows.stride % 8 != 0) visit_four(row + rows.stride - 4, *bits++);
  }
}

#if defined(__AVX512F__)

/// out = the x of the entries that are in, compacted. Returns their number.
inline int64_t gather_in(const SolutionRows& rows, const double* __restrict x,
                         double* __restrict out) {
  const double* start = out;
  for_each_byte(
      rows,
      [&](int64_t place, uint8_t bits) {
        _mm512_storeu_pd(out, _mm512_maskz_compress_pd(bits, _mm512_loadu_pd(x + place)));
        out += __builtin_popcount(bits);
      },
      [&](int64_t place, uint8_t bits) {
        _mm256_storeu_pd(out, _mm256_maskz_compress_pd(bits, _mm256_loadu_pd(x + place)));
        out += __builtin_popcount(bits);
      });
  return out - start;
}

/// The inverse.
inline void scatter_in(const SolutionRows& rows, const double* __restrict x,
                       double* __restrict out) {
  for_each_byte(
      rows,
      [&](int64_t place, uint8_t bits) {
        const __m512d into = _mm512_loadu_pd(out + place);
        _mm512_storeu_pd(out + place, _mm512_mask_expand_pd(into, bits, _mm512_loadu_pd(x)));
        x += __builtin_popcount(bits);
      },
      [&](int64_t place, uint8_t bits) {
        const __m256d into = _mm256_loadu_pd(out + place);
        _mm256_storeu_pd(out + place, _mm256_mask_expand_pd(into, bits, _mm256_loadu_pd(x)));
        x += __builtin_popcount(bits);
      });
}

#else

// By groups of four of which at least one is in.

inline int64_t gather_in(const SolutionRows& rows, const double* __restrict x,
                         double* __restrict out) {
  const double* start = out;
  const auto gather = [&](int64_t place, uint32_t bits) {
    __builtin_memcpy(out, x + place, sizeof(Lanes<4>::Reals));
    out += bits != 0 ? 4 : 0;
  };
  for_each_byte(
      rows,
      [&](int64_t place, uint8_t bits) {
        gather(place, bits & 0xf);
        gather(place + 4, bits >> 4);
      },
      gather);
  return out - start;
}

inline void scatter_in(const SolutionRows& rows, const double* __restrict x,
                       double* __restrict out) {
  using L = Lanes<4>;
  const auto scatter = [&](int64_t place, uint32_t bits) {
    const L::Reals before = L::load(out + place, L::Whole{});
    L::store(L::has(bits) ? L::load(x, L::Whole{}) : before, out + place);
    x += bits != 0 ? 4 : 0;
  };
  for_each_byte(
      rows,
      [&](int64_t place, uint8_t bits) {
        scatter(place, bits & 0xf);
        scatter(place + 4, bits >> 4);
      },
      scatter);
}

#endif

}  // namespace
}  // namespace aimle
