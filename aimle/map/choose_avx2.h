// Shared by the AVX2 solvers of top-k and argmax: writes a row once its threshold is known.
// For inclusion in AVX2 files only; everything has internal linkage.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "aimle/map/map.h"

namespace aimle::avx2 {
namespace {

inline constexpr float kInfinity = __builtin_huge_valf();
inline constexpr float kMasked = -kInfinity;

/// Number of floats that may be written past the end of a Scratch.
inline constexpr int64_t kSlack = 32;

/// Heap memory of floats, with space for writes of whole blocks past the end; none if empty.
class Scratch {
 public:
  explicit Scratch(int64_t size)
      : data_(size == 0 ? nullptr : new float[static_cast<size_t>(size + kSlack)]) {}
  ~Scratch() { delete[] data_; }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  float* data() const { return data_; }

 private:
  float* data_;
};

inline __m256 ones() { return _mm256_set1_ps(1.0f); }

inline float lowest_lane(__m256 v) { return _mm_cvtss_f32(_mm256_castps256_ps128(v)); }

inline float horizontal_max(__m256 v) {
  v = _mm256_max_ps(v, _mm256_permute2f128_ps(v, v, 1));
  v = _mm256_max_ps(v, _mm256_shuffle_ps(v, v, 0x4e));
  v = _mm256_max_ps(v, _mm256_shuffle_ps(v, v, 0xb1));
  return lowest_lane(v);
}

inline float horizontal_min(__m256 v) {
  v = _mm256_min_ps(v, _mm256_permute2f128_ps(v, v, 1));
  v = _mm256_min_ps(v, _mm256_shuffle_ps(v, v, 0x4e));
  v = _mm256_min_ps(v, _mm256_shuffle_ps(v, v, 0xb1));
  return lowest_lane(v);
}

inline int64_t horizontal_sum(__m256i v) {
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
  return _mm_cvtsi128_si32(sum);
}

inline void fill(float* z, int64_t n, float value) {
  for (int64_t j = 0; j < n; ++j) z[j] = value;
}

/// Masked entries become -inf. Reads mask and scores only inside [0, n).
inline void copy_unmasked(const float* scores, const bool* mask, int64_t n, float* out) {
  const __m256 masked = _mm256_set1_ps(kMasked);
  int64_t j = 0;
  for (; j + 8 <= n; j += 8) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(mask + j));
    const __m256i off = _mm256_cmpeq_epi32(_mm256_cvtepu8_epi32(bytes), _mm256_setzero_si256());
    _mm256_storeu_ps(
        out + j, _mm256_blendv_ps(_mm256_loadu_ps(scores + j), masked, _mm256_castsi256_ps(off)));
  }
  for (; j < n; ++j) out[j] = mask[j] ? scores[j] : kMasked;
}

/// Too many entries reach the threshold: removes the last `surplus` of those that equal it.
[[gnu::noinline]] inline void drop_last_ties(const float* scores, int64_t n, float threshold,
                                             int64_t surplus, float* z) {
  const __m256 t = _mm256_set1_ps(threshold);
  int64_t end = n;
  for (; surplus > 0 && end >= 8; end -= 8) {
    const __m256 tied = _mm256_cmp_ps(_mm256_loadu_ps(scores + end - 8), t, _CMP_EQ_OQ);
    const int ties = __builtin_popcount(static_cast<unsigned>(_mm256_movemask_ps(tied)));
    if (ties > surplus) break;
    _mm256_storeu_ps(z + end - 8, _mm256_andnot_ps(tied, _mm256_loadu_ps(z + end - 8)));
    surplus -= ties;
  }
  for (int64_t j = end - 1; surplus > 0; --j) {
    if (scores[j] == threshold) {
      z[j] = 0.0f;
      --surplus;
    }
  }
}

/// Chooses the entries that reach the threshold, the k-th largest score; n >= 8.
inline void choose(const float* scores, int64_t n, int64_t k, float threshold, float* z) {
  const __m256 t = _mm256_set1_ps(threshold);
  __m256i counts = _mm256_setzero_si256();
  int64_t j = 0;
  for (; j + 8 <= n; j += 8) {
    const __m256 reaches = _mm256_cmp_ps(_mm256_loadu_ps(scores + j), t, _CMP_GE_OQ);
    counts = _mm256_sub_epi32(counts, _mm256_castps_si256(reaches));
    _mm256_storeu_ps(z + j, _mm256_and_ps(reaches, ones()));
  }
  int64_t count = 0;
  if (const int64_t rest = n - j; rest > 0) {
    const __m256 reaches = _mm256_cmp_ps(_mm256_loadu_ps(scores + n - 8), t, _CMP_GE_OQ);
    _mm256_storeu_ps(z + n - 8, _mm256_and_ps(reaches, ones()));
    count = __builtin_popcount(static_cast<unsigned>(_mm256_movemask_ps(reaches)) >> (8 - rest));
  }
  count += horizontal_sum(counts);
  if (count != k) [[unlikely]]
    drop_last_ties(scores, n, threshold, count - k, z);
}

}  // namespace
}  // namespace aimle::avx2
