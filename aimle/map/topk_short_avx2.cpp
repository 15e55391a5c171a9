#include <immintrin.h>

#include <type_traits>

#include "aimle/map/topk_avx2.h"
#include "aimle/map/topk_short.h"

namespace aimle::avx2 {
namespace {

/// Eight entries of eight rows, as eight columns.
[[gnu::always_inline]] inline void transpose(const float* rows, int64_t stride, __m256* columns) {
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
    columns[4 * side] = _mm256_shuffle_ps(low01, low23, 0x44);
    columns[4 * side + 1] = _mm256_shuffle_ps(low01, low23, 0xee);
    columns[4 * side + 2] = _mm256_shuffle_ps(high01, high23, 0x44);
    columns[4 * side + 3] = _mm256_shuffle_ps(high01, high23, 0xee);
  }
}

struct Machine {
  static constexpr int kVectorBytes = 32;

  template <class T, class Lanes>
  [[gnu::always_inline]] static void load_columns(const T* rows, int64_t n, Lanes* columns) {
    if constexpr (std::is_same_v<T, float>) {
      if (n >= 8) {
        for (int64_t j = 0; j + 8 <= n; j += 8) transpose(rows + j, n, columns + j);
        transpose(rows + n - 8, n, columns + n - 8);
        return;
      }
    }
    for (int64_t j = 0; j < n; ++j) {
      Lanes column;
      for (int64_t r = 0; r < static_cast<int64_t>(sizeof(Lanes) / sizeof(T)); ++r) {
        column[r] = rows[r * n + j];
      }
      columns[j] = column;
    }
  }
};

}  // namespace

void solve_short_rows(const TopK& solver, const Rows<float>& rows) {
  aimle::solve_short_rows<Machine>(solver, rows);
}
void solve_short_rows(const TopK& solver, const Rows<double>& rows) {
  aimle::solve_short_rows<Machine>(solver, rows);
}

}  // namespace aimle::avx2
