#include <immintrin.h>

#include "aimle/map/graph_lanes.h"

namespace aimle::avx2 {
namespace {

struct Machine {
  static constexpr int kVectorBytes = 32;

  [[gnu::always_inline]] static __m256 lesser(__m256 a, __m256 b) { return _mm256_min_ps(a, b); }
  [[gnu::always_inline]] static __m256d lesser(__m256d a, __m256d b) { return _mm256_min_pd(a, b); }
};

}  // namespace

GraphLanes<float> graph_lanes_of_floats() { return graph_lanes_by<float, Machine>(); }
GraphLanes<double> graph_lanes_of_doubles() { return graph_lanes_by<double, Machine>(); }

}  // namespace aimle::avx2
