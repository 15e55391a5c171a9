#include <immintrin.h>

#include "aimle/map/knapsack_lines.h"

namespace aimle::avx2 {

void add_item(const float* before, float* after, uint8_t* taken, int64_t begin, int64_t end,
              int64_t weight, float x) {
  const float* lighter = before - weight;
  const __m256 score = _mm256_set1_ps(x);
  for (int64_t c = begin; c < end; c += 8) {
    const __m256 without = _mm256_loadu_ps(before + c);
    const __m256 with = _mm256_add_ps(_mm256_loadu_ps(lighter + c), score);
    const __m256 better = _mm256_cmp_ps(with, without, _CMP_GT_OQ);
    _mm256_storeu_ps(after + c, _mm256_max_ps(with, without));  // the latter unless better
    taken[c / 8] = static_cast<uint8_t>(_mm256_movemask_ps(better));
  }
}

void add_item(const double* before, double* after, uint8_t* taken, int64_t begin, int64_t end,
              int64_t weight, double x) {
  const double* lighter = before - weight;
  const __m256d score = _mm256_set1_pd(x);
  const auto four = [&](int64_t c) {
    const __m256d without = _mm256_loadu_pd(before + c);
    const __m256d with = _mm256_add_pd(_mm256_loadu_pd(lighter + c), score);
    const __m256d better = _mm256_cmp_pd(with, without, _CMP_GT_OQ);
    _mm256_storeu_pd(after + c, _mm256_max_pd(with, without));
    return _mm256_movemask_pd(better);
  };
  for (int64_t c = begin; c < end; c += 8) {
    const int low = four(c), high = four(c + 4);
    taken[c / 8] = static_cast<uint8_t>(low | high << 4);
  }
}

}  // namespace aimle::avx2
