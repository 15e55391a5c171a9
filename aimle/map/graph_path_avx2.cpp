#include <immintrin.h>

#include "aimle/map/graph_lanes.h"
#include "aimle/map/transpose_avx2.h"

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
        __m256 m[8];
        for (int i = 0; i < 8; ++i) m[i] = _mm256_loadu_ps(rows[lane + i] + j);
        transpose(m);
        float* const at = values + j * kGraphLanes<float> + lane;
        for (int i = 0; i < 8; ++i) _mm256_store_ps(at + i * kGraphLanes<float>, m[i]);
      }
    }
    return j;
  }
};

}  // namespace

GraphLanes<float> graph_lanes_of_floats() { return graph_lanes_by<float, Machine>(); }
GraphLanes<double> graph_lanes_of_doubles() { return graph_lanes_by<double, Machine>(); }

}  // namespace aimle::avx2
