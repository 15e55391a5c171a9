#include <immintrin.h>

#include "aimle/noise/fill_rows_vector.h"
#include "aimle/noise/quantile_table.h"

namespace aimle::avx2 {
namespace {

/// The first half of the look-up, separate so that it is vectorised.
[[gnu::noinline]] void find_cells(const float* words, int64_t count, uint32_t* index, float* t) {
  for (int64_t i = 0; i < count; ++i) {
    const QuantileCell cell = quantile_cell(float_bits(words[i]));
    index[i] = cell.index;
    t[i] = cell.t;
  }
}

/// Quantiles by the table. Its cells are loaded by eight 16-byte loads and a transpose, which is
/// faster than four gathers.
void look_up(const float* table, float* values, int64_t groups) {
  constexpr int64_t kGroups = 8;
  alignas(32) uint32_t index[8 * kGroups];
  alignas(32) float t[8 * kGroups];
  for (; groups > 0; groups -= kGroups) {
    const int64_t now = groups < kGroups ? groups : kGroups;
    find_cells(values, 8 * now, index, t);
    for (int64_t group = 0; group < now; ++group, values += 8) {
      const auto cell = [&](int64_t i) {
        return table + kQuantileCoefficients * index[8 * group + i];
      };
      const auto two_cells = [&](int64_t i) {
        return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(cell(i))),
                                    _mm_loadu_ps(cell(i + 4)), 1);
      };
      const __m256 row0 = two_cells(0), row1 = two_cells(1), row2 = two_cells(2),
                   row3 = two_cells(3);
      const __m256 low01 = _mm256_unpacklo_ps(row0, row1), high01 = _mm256_unpackhi_ps(row0, row1);
      const __m256 low23 = _mm256_unpacklo_ps(row2, row3), high23 = _mm256_unpackhi_ps(row2, row3);
      const __m256 c0 = _mm256_shuffle_ps(low01, low23, 0x44);
      const __m256 c1 = _mm256_shuffle_ps(low01, low23, 0xee);
      const __m256 c2 = _mm256_shuffle_ps(high01, high23, 0x44);
      const __m256 c3 = _mm256_shuffle_ps(high01, high23, 0xee);
      const __m256 x = _mm256_load_ps(t + 8 * group);
      const __m256 cubic =
          _mm256_fmadd_ps(_mm256_fmadd_ps(_mm256_fmadd_ps(c3, x, c2), x, c1), x, c0);
      _mm256_store_ps(values, cubic);
    }
  }
}

struct Machine {
  static constexpr int kLanes = 8, kVectors = 2;
  static constexpr int32_t kOrder[kLanes] = {0, 4, 2, 6, 1, 5, 3, 7};
  using Wide [[gnu::vector_size(32)]] = uint64_t;
  using Float [[gnu::vector_size(32)]] = float;

  static Float fma(Float a, Float b, Float c) { return _mm256_fmadd_ps(a, b, c); }
  static Wide multiply(Wide a, Wide b) { return (Wide)_mm256_mul_epu32((__m256i)a, (__m256i)b); }
  static Wide join(Wide low, Wide high) {
    return (Wide)_mm256_blend_epi32((__m256i)low, (__m256i)(high << 32), 0xaa);
  }
  static Wide even(Wide a, Wide b) { return (Wide)_mm256_unpacklo_epi64((__m256i)a, (__m256i)b); }
  static Wide odd(Wide a, Wide b) { return (Wide)_mm256_unpackhi_epi64((__m256i)a, (__m256i)b); }
  static void look_up(const NoiseSource& source, float* values, int64_t count) {
    avx2::look_up(source.table, values, (count + 7) / 8);
  }
};

}  // namespace

void fill_rows(const NoiseSource& source, Key key, const NoiseRows& rows, float* out) {
  RowFiller<Machine>::fill(source, key, rows, out);
}

void words_to_noise(const NoiseSource& source, float* values, int64_t count) {
  RowFiller<Machine>::words_to_noise(source, values, count);
}

}  // namespace aimle::avx2
