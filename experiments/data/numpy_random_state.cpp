#include "experiments/data/numpy_random_state.h"

#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

namespace aimle::experiments {

double RandomState::rand() {
  const uint32_t high = words_() >> 5;
  const uint32_t low = words_() >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

double RandomState::randn() {
  if (spare_) return std::exchange(spare_, std::nullopt).value();
  double x1 = 0.0;
  double x2 = 0.0;
  double r2 = 0.0;
  do {
    x1 = 2.0 * rand() - 1.0;
    x2 = 2.0 * rand() - 1.0;
    r2 = x1 * x1 + x2 * x2;
  } while (r2 >= 1.0 || r2 == 0.0);
  const double f = std::sqrt(-2.0 * std::log(r2) / r2);
  spare_ = f * x1;
  return f * x2;
}

std::vector<double> RandomState::randn(int64_t count) {
  std::vector<double> result(static_cast<size_t>(count));
  for (double& value : result) value = randn();
  return result;
}

uint32_t RandomState::integer(uint32_t largest) {
  if (largest == 0) return 0;
  const uint32_t mask = std::bit_ceil(uint64_t{largest} + 1) - 1;
  uint32_t value = 0;
  do value = words_() & mask;
  while (value > largest);
  return value;
}

std::vector<int64_t> RandomState::permutation(int64_t n) {
  std::vector<int64_t> result(static_cast<size_t>(n));
  std::iota(result.begin(), result.end(), int64_t{0});
  for (auto i = static_cast<uint32_t>(n); i-- > 1;) std::swap(result[i], result[integer(i)]);
  return result;
}

}  // namespace aimle::experiments
