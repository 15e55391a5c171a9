#include "aimle/map/chain_avx2.h"

#include <immintrin.h>

#include "aimle/map/chain_steps.h"

namespace aimle::avx2 {
namespace {

struct Machine {
  static constexpr int kVectorBytes = 32;

  [[gnu::always_inline]] static __m256 larger(__m256 a, __m256 b) { return _mm256_max_ps(a, b); }
  [[gnu::always_inline]] static __m256d larger(__m256d a, __m256d b) { return _mm256_max_pd(a, b); }
};

}  // namespace

bool chain_step(int64_t labels, const float* before, const float* x, float* after) {
  return ChainSteps<float, Machine>::step(labels, before, x, after);
}
bool chain_step(int64_t labels, const double* before, const double* x, double* after) {
  return ChainSteps<double, Machine>::step(labels, before, x, after);
}

}  // namespace aimle::avx2
