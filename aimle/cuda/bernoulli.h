// Bernoulli by a group of threads: 32 entries, one word of the solution, per thread.
#pragma once

#include <cstdint>

#include "aimle/cuda/group.h"
#include "aimle/map/map.h"

namespace aimle::cuda {

/// `scores.for_word(w, body)` calls body(j, score) for the entries 32 w ... 32 w + 31 of the row;
/// `write(w, bits)` gets the solution's word. NaN is detected at the end: words may be written
/// before.
template <class T, class Group, class Scores, class Write>
AIMLE_DEVICE Status solve_signs(Group& group, int64_t n, const Scores& scores, const bool* mask,
                                const Write& write) {
  bool nan = false;
  for (int64_t w = group.rank(); 32 * w < n; w += group.size()) {
    uint32_t bits = 0;
    scores.for_word(w, [&](int64_t j, T x) {
      const bool allowed = mask == nullptr || mask[j];
      nan |= allowed && x != x;
      if (allowed && x > T(0)) bits |= 1u << (j % 32);
    });
    write(w, bits);
  }
  return group.any(nan) ? Status::kNaN : Status::kOk;
}

}  // namespace aimle::cuda
