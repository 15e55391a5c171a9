#include <immintrin.h>

#include "aimle/noise/fill_rows_vector.h"

namespace aimle::avx512 {
namespace {

struct Machine {
  static constexpr int kLanes = 16, kVectors = 4;
  static constexpr int32_t kOrder[kLanes] = {0, 8, 4, 12, 1, 9, 5, 13, 2, 10, 6, 14, 3, 11, 7, 15};
  using Wide [[gnu::vector_size(64)]] = uint64_t;
  using Float [[gnu::vector_size(64)]] = float;

  static Float fma(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
  static Wide multiply(Wide a, Wide b) { return (Wide)_mm512_mul_epu32((__m512i)a, (__m512i)b); }
  static Wide join(Wide low, Wide high) {
    return (Wide)_mm512_mask_blend_epi32(0xaaaa, (__m512i)low, (__m512i)(high << 32));
  }
  static Wide even(Wide a, Wide b) { return (Wide)_mm512_unpacklo_epi64((__m512i)a, (__m512i)b); }
  static Wide odd(Wide a, Wide b) { return (Wide)_mm512_unpackhi_epi64((__m512i)a, (__m512i)b); }
  static void look_up(const NoiseSource& source, float* values, int64_t count) {
    avx2::words_to_noise(source, values, count);  // bound by loads, not arithmetic
  }
};

}  // namespace

void fill_rows(const NoiseSource& source, Key key, const NoiseRows& rows, float* out) {
  RowFiller<Machine>::fill(source, key, rows, out);
}

void words_to_noise(const NoiseSource& source, float* values, int64_t count) {
  RowFiller<Machine>::words_to_noise(source, values, count);
}

}  // namespace aimle::avx512
