// NumPy's RandomState, bit for bit: the generator behind the authors' synthetic problems.
//
//   RandomState(0).randn(3)        1.76405235 0.40015721 0.97873798
//   RandomState(0).permutation(10) 2 8 4 9 1 6 7 3 0 5
//
// MT19937 seeded by init_genrand, which is std::mt19937. A double takes two words, 53 bits in all.
// randn is Marsaglia's polar method, with libm's logarithm and square root, as in NumPy.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace aimle::experiments {

class RandomState {
 public:
  explicit RandomState(uint32_t seed) : words_(seed) {}

  /// Uniform in [0, 1).
  double rand();
  /// Standard normal.
  double randn();
  std::vector<double> randn(int64_t count);
  /// 0 ... n-1 in random order (Fisher-Yates from the top).
  std::vector<int64_t> permutation(int64_t n);

 private:
  /// Uniform in [0, largest], by masking and rejection.
  uint32_t integer(uint32_t largest);

  std::mt19937 words_;
  std::optional<double> spare_;
};

}  // namespace aimle::experiments
