// Transposes eight by eight floats. For files compiled for AVX2 only.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace aimle::avx2 {

/// columns[c] = entry c of eight rows with distance `stride`.
[[gnu::always_inline]] inline void load_transposed(const float* rows, int64_t stride,
                                                   __m256* columns) {
  for (int side = 0; side < 2; ++side) {
    __m256 r[4];  // rows i and i + 4
    for (int i = 0; i < 4; ++i) {
      const float* entry = rows + i * stride + 4 * side;
      r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(entry)),
                                  _mm_loadu_ps(entry + 4 * stride), 1);
    }
    const __m256 low01 = _mm256_unpacklo_ps(r[0], r[1]);
    const __m256 high01 = _mm256_unpackhi_ps(r[0], r[1]);
    const __m256 low23 = _mm256_unpacklo_ps(r[2], r[3]);
    const __m256 high23 = _mm256_unpackhi_ps(r[2], r[3]);
    columns[4 * side + 0] = _mm256_shuffle_ps(low01, low23, 0x44);
    columns[4 * side + 1] = _mm256_shuffle_ps(low01, low23, 0xee);
    columns[4 * side + 2] = _mm256_shuffle_ps(high01, high23, 0x44);
    columns[4 * side + 3] = _mm256_shuffle_ps(high01, high23, 0xee);
  }
}

/// The inverse: entry c of eight rows with distance `stride` = columns[c].
[[gnu::always_inline]] inline void store_transposed(const __m256* columns, float* rows,
                                                    int64_t stride) {
  __m256 half[8];  // half rows i and i + 4: of columns 0-3, then of columns 4-7
  for (int side = 0; side < 2; ++side) {
    const __m256* c = columns + 4 * side;
    const __m256 low01 = _mm256_unpacklo_ps(c[0], c[1]);
    const __m256 high01 = _mm256_unpackhi_ps(c[0], c[1]);
    const __m256 low23 = _mm256_unpacklo_ps(c[2], c[3]);
    const __m256 high23 = _mm256_unpackhi_ps(c[2], c[3]);
    half[4 * side + 0] = _mm256_shuffle_ps(low01, low23, 0x44);
    half[4 * side + 1] = _mm256_shuffle_ps(low01, low23, 0xee);
    half[4 * side + 2] = _mm256_shuffle_ps(high01, high23, 0x44);
    half[4 * side + 3] = _mm256_shuffle_ps(high01, high23, 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(rows + i * stride,
                     _mm256_insertf128_ps(half[i], _mm256_castps256_ps128(half[i + 4]), 1));
    _mm256_storeu_ps(rows + (i + 4) * stride, _mm256_permute2f128_ps(half[i], half[i + 4], 0x31));
  }
}

}  // namespace aimle::avx2
