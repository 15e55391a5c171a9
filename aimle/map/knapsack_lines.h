// One line of a knapsack's table from the one before it. Private to knapsack*.cpp.
#pragma once

#include <cstdint>

namespace aimle {
namespace detail {

/// f(j, c) for c in [begin, end), and a bit in `taken` for every c at which item j is taken. begin
/// is a multiple of 8, and up to 7 more entries than requested may be written. before[-weight] and
/// the following entries can be read, and are -inf below 0.
template <class T>
void add_item(const T* before, T* after, uint8_t* taken, int64_t begin, int64_t end, int64_t weight,
              T x) {
  const T* lighter = before - weight;
  for (int64_t first = begin; first < end; first += 8) {
    unsigned bits = 0;
    for (int64_t i = 0; i < 8; ++i) {
      const T with = lighter[first + i] + x;
      const bool better = with > before[first + i];
      after[first + i] = better ? with : before[first + i];
      bits |= static_cast<unsigned>(better) << i;
    }
    taken[first / 8] = static_cast<uint8_t>(bits);
  }
}

}  // namespace detail

namespace avx2 {

void add_item(const float* before, float* after, uint8_t* taken, int64_t begin, int64_t end,
              int64_t weight, float x);
void add_item(const double* before, double* after, uint8_t* taken, int64_t begin, int64_t end,
              int64_t weight, double x);

}  // namespace avx2
}  // namespace aimle
