#include <immintrin.h>

#include "aimle/map/choose_avx2.h"
#include "aimle/map/topk_avx2.h"

namespace aimle::avx2 {
namespace {

/// n >= 8; some entries are read twice if n is not a multiple of 16.
Status solve_row(const float* scores, int64_t n, float* z) {
  __m256 best = _mm256_loadu_ps(scores + n - 8);
  __m256 second = _mm256_loadu_ps(scores);
  __m256 nan = _mm256_cmp_ps(best, second, _CMP_UNORD_Q);
  for (int64_t j = 0; j + 16 <= n; j += 16) {
    const __m256 a = _mm256_loadu_ps(scores + j);
    const __m256 b = _mm256_loadu_ps(scores + j + 8);
    best = _mm256_max_ps(a, best);
    second = _mm256_max_ps(b, second);
    nan = _mm256_or_ps(nan, _mm256_cmp_ps(a, b, _CMP_UNORD_Q));
  }
  if (n % 16 > 8) {
    const __m256 a = _mm256_loadu_ps(scores + n / 16 * 16);
    second = _mm256_max_ps(a, second);
    nan = _mm256_or_ps(nan, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
  }
  if (_mm256_movemask_ps(nan) != 0) return Status::kNaN;
  const float largest = horizontal_max(_mm256_max_ps(best, second));
  if (largest == kMasked) return Status::kTooFewEntries;
  choose(scores, n, 1, largest, z);
  return Status::kOk;
}

}  // namespace

void solve_rows(const Argmax& solver, const Rows<float>& rows) {
  const int64_t n = solver.n;
  const Scratch unmasked(rows.mask != nullptr ? n : 0);
  for (int64_t i = 0; i < rows.count; ++i) {
    const float* scores = rows.scores + i * n;
    float* z = rows.z + i * n;
    if (rows.mask != nullptr) {
      copy_unmasked(scores, rows.mask + i * n, n, unmasked.data());
      scores = unmasked.data();
    }
    rows.status[i] = solve_row(scores, n, z);
    if (rows.status[i] != Status::kOk) [[unlikely]]
      fill(z, n, __builtin_nanf(""));
  }
}

}  // namespace aimle::avx2
