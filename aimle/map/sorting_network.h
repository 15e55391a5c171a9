// A sorting network: comparators at fixed positions, the same for all data.
//
// Batcher, "Sorting networks and their applications", AFIPS 1968: odd-even merge sort, O(n log^2 n)
// comparators. Internal linkage, so that no file uses code of another (topk_short.h).
#pragma once

namespace aimle {
namespace {

/// For any size: the network of the next power of two without the comparators that touch missing
/// entries. Comparator i puts the larger of its two at low[i], the other at high[i].
template <int kSize>
struct Network {
  int count = 0;
  int low[256] = {};
  int high[256] = {};

  constexpr Network() {
    for (int p = 1; p < kSize; p *= 2) {
      for (int q = p; q >= 1; q /= 2) {
        for (int j = q % p; j + q < kSize; j += 2 * q) {
          for (int i = j; i < j + q && i + q < kSize; ++i) {
            if (i / (2 * p) == (i + q) / (2 * p)) {
              low[count] = i;
              high[count++] = i + q;
            }
          }
        }
      }
    }
  }
};

}  // namespace
}  // namespace aimle
