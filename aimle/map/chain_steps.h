// The sums of Chain, a step at a time: the kernel that all instruction sets share.
//
// For inclusion in one source file per instruction set: everything has internal linkage, so that no
// file uses code of another. `Machine` defines the length of a vector, and the larger of two:
//
//   struct Machine {
//     static constexpr int kVectorBytes;
//     /// a > b ? a : b, hence b where one of them is NaN
//     template <class Lanes> static Lanes larger(Lanes a, Lanes b);
//   };
#pragma once

#include <cstdint>

namespace aimle {
namespace {

template <class T, class Machine>
class ChainSteps {
 public:
  static constexpr int64_t kLanes = Machine::kVectorBytes / static_cast<int>(sizeof(T));

  /// after[j] = max over i of before[i] + x[i, j], -inf where nothing is larger; labels >= kLanes.
  /// Returns whether an x is NaN.
  static bool step(int64_t labels, const T* before, const T* x, T* after) {
    Mask nan{};
    int64_t j = 0;
    for (; j + 4 * kLanes <= labels; j += 4 * kLanes) columns<4>(labels, before, x, j, after, nan);
    // The rest is covered by a last vector that ends at the end of the row.
    const int64_t left = (labels - j + kLanes - 1) / kLanes;
    if (left == 1) columns<1>(labels, before, x, j, after, nan);
    if (left == 2) columns<2>(labels, before, x, j, after, nan);
    if (left == 3) columns<3>(labels, before, x, j, after, nan);
    if (left == 4) columns<4>(labels, before, x, j, after, nan);
    bool any = false;
    for (int64_t lane = 0; lane < kLanes; ++lane) any |= nan[lane] != 0;
    return any;
  }

 private:
  typedef T Lanes __attribute__((vector_size(Machine::kVectorBytes)));
  typedef T Unaligned
      __attribute__((vector_size(Machine::kVectorBytes), aligned(alignof(T)), may_alias));
  using Mask = decltype(Lanes{} != Lanes{});

  /// kVectors vectors of columns from j on, none beyond the last column.
  template <int kVectors>
  [[gnu::always_inline]] static void columns(int64_t labels, const T* before, const T* x, int64_t j,
                                             T* after, Mask& nan) {
    int64_t at[kVectors];
    Lanes best[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      at[v] = j + (v + 1) * kLanes <= labels ? j + v * kLanes : labels - kLanes;
      best[v] = Lanes{} - __builtin_huge_val();
    }
    for (int64_t i = 0; i < labels; ++i) {
      const T* const row = x + i * labels;
      for (int v = 0; v < kVectors; ++v) {
        const Lanes score = *reinterpret_cast<const Unaligned*>(row + at[v]);
        best[v] = Machine::larger(before[i] + score, best[v]);
        nan |= score != score;
      }
    }
    for (int v = 0; v < kVectors; ++v) *reinterpret_cast<Unaligned*>(after + at[v]) = best[v];
  }
};

}  // namespace
}  // namespace aimle
