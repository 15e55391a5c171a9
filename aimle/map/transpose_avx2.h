// Eight by eight floats: loading, masking and transposing them. For files compiled for AVX2 only.
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

/// Transposes eight vectors.
[[gnu::always_inline]] inline void transpose(__m256 (&m)[8]) {
  __m256 pairs[8], quads[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(m[i], m[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(m[i], m[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    quads[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
    quads[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
    quads[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
    quads[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    m[i] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x20);
    m[i + 4] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x31);
  }
}

/// x where the mask is true, `otherwise` where it is not.
[[gnu::always_inline]] inline __m256 unmasked(__m256 x, const bool* mask, __m256 otherwise) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(mask));
  const __m256i keep = _mm256_cmpgt_epi32(_mm256_cvtepu8_epi32(bytes), _mm256_setzero_si256());
  return _mm256_blendv_ps(otherwise, x, _mm256_castsi256_ps(keep));
}

/// The first eight scores, of which `count` exist; beyond them the result is arbitrary.
template <bool kMasked>
[[gnu::always_inline]] inline __m256 load_unmasked(const float* scores, const bool* mask,
                                                   int64_t count, __m256 otherwise) {
  float few_scores[8] = {};
  bool few_allowed[8] = {};
  if (count < 8) {
    for (int64_t i = 0; i < count; ++i) {
      few_scores[i] = scores[i];
      if constexpr (kMasked) few_allowed[i] = mask[i];
    }
    scores = few_scores;
    mask = few_allowed;
  }
  const __m256 x = _mm256_loadu_ps(scores);
  return kMasked ? unmasked(x, mask, otherwise) : x;
}

}  // namespace aimle::avx2
