#include <immintrin.h>

#include "aimle/map/graph_lanes.h"

namespace aimle::avx2 {
namespace {

struct Machine {
  static constexpr int kVectorBytes = 32;

  [[gnu::always_inline]] static __m256 lesser(__m256 a, __m256 b) { return _mm256_min_ps(a, b); }
  [[gnu::always_inline]] static __m256d lesser(__m256d a, __m256d b) { return _mm256_min_pd(a, b); }

  static int64_t interleave(const float* const* rows, int64_t n, float* values) {
    int64_t j = 0;
    for (; j + 8 <= n; j += 8) {
      for (int lane = 0; lane < kGraphLanes<float>; lane += 8) {
        transpose(rows + lane, j, values + j * kGraphLanes<float> + lane);
      }
    }
    return j;
  }

 private:
  /// Eight entries of eight rows, transposed to one row of lanes per entry.
  [[gnu::always_inline]] static void transpose(const float* const* rows, int64_t j, float* values) {
    __m256 r[8], pairs[8], fours[8];
    for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(rows[i] + j);
    for (int i = 0; i < 8; i += 2) {
      pairs[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
      pairs[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
      for (int k = 0; k < 2; ++k) {
        fours[i + 2 * k] = _mm256_shuffle_ps(pairs[i + k], pairs[i + k + 2], 0x44);
        fours[i + 2 * k + 1] = _mm256_shuffle_ps(pairs[i + k], pairs[i + k + 2], 0xee);
      }
    }
    for (int i = 0; i < 4; ++i) {
      const __m256 low = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
      const __m256 high = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
      _mm256_store_ps(values + i * kGraphLanes<float>, low);
      _mm256_store_ps(values + (i + 4) * kGraphLanes<float>, high);
    }
  }
};

}  // namespace

GraphLanes<float> graph_lanes_of_floats() { return graph_lanes_by<float, Machine>(); }
GraphLanes<double> graph_lanes_of_doubles() { return graph_lanes_by<double, Machine>(); }

}  // namespace aimle::avx2
