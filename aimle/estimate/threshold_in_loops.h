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
  const int64_t bytes = (n + 7) / 8;
  int64_t count = 0, byte = 0;
  for (; byte + 8 <= bytes; byte += 8) {
    uint64_t eight;
    __builtin_memcpy(&eight, bits + byte, sizeof eight);
    count += __builtin_popcountll(eight);
  }
  for (; byte < bytes; ++byte) count += __builtin_popcount(bits[byte]);
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

/// visit(entry) for those of a row that are in, in ascending order.
template <class Visit>
[[gnu::always_inline]] inline void for_each_in(const uint8_t* bits, int64_t n, Visit visit) {
  const int64_t bytes = (n + 7) / 8;
  for (int64_t first = 0; first < bytes; first += 8) {
    uint64_t rest = 0;
    if (first + 8 <= bytes) {
      __builtin_memcpy(&rest, bits + first, 8);
    } else {
      for (int64_t i = first; i < bytes; ++i) rest |= uint64_t{bits[i]} << 8 * (i - first);
    }
    for (; rest != 0; rest &= rest - 1) visit(8 * first + __builtin_ctzll(rest));
  }
}

/// x_j = weight(x_j) for the entries that are in.
template <class Weight>
[[gnu::always_inline]] inline void weigh_in(const SolutionRows& rows, double* __restrict x,
                                            double* __restrict scratch, Weight weight) {
  const auto weigh_gathered = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i) scratch[i] = weight(scratch[i]);
  };
  if (rows.count == 1 && 16 * count_in(rows.bits, rows.n) < rows.n) {  // a few of a long row
    int64_t count = 0;
    for_each_in(rows.bits, rows.n, [&](int64_t j) { scratch[count++] = x[j]; });
    weigh_gathered(count);
    count = 0;
    for_each_in(rows.bits, rows.n, [&](int64_t j) { x[j] = scratch[count++]; });
    return;
  }
  weigh_gathered(gather_in(rows, x, scratch));
  scatter_in(rows, scratch, x);
}

}  // namespace
}  // namespace aimle
