// With whom the entries of a solution change places, at which score, and what that gains.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "aimle/estimate/tree_thresholds.h"
#include "aimle/map/solver.h"
#include "aimle/registry/library_solvers.h"

namespace aimle::cases {

template <class T>
struct Swaps {
  std::vector<T> threshold;        // infinite where there is no partner
  std::vector<int64_t> partner;    // -1 where there is none
  std::vector<double> difference;  // of <d, z>, j in the place of its partner
};

/// Of the solution z of scores x; argmax and top-k by their definition, trees by the library.
template <class T>
Swaps<T> find_swaps(const Solver& solver, const T* x, const bool* mask, const T* z, const T* d) {
  const int64_t n = solver.size();
  const auto size = static_cast<size_t>(n);
  Swaps<T> swaps{.threshold = std::vector<T>(size, std::numeric_limits<T>::infinity()),
                 .partner = std::vector<int64_t>(size, -1),
                 .difference = std::vector<double>(size)};
  if (const auto* tree = solver.get_if<SpanningTree>()) {
    std::vector<uint8_t> bits((size + 7) / 8);
    for (size_t j = 0; j < size; ++j) bits[j / 8] |= static_cast<uint8_t>((z[j] == T(1)) << j % 8);
    TreeThresholds<T> thresholds(*tree);
    thresholds.find(x, mask, bits.data());
    thresholds.write(x, d, swaps.threshold.data(), swaps.difference.data());
    for (size_t j = 0; j < size; ++j)
      swaps.partner[j] = thresholds.partner(static_cast<int64_t>(j));
    return swaps;
  }
  int64_t worst_in = -1, best_out = -1;
  for (int64_t j = 0; j < n; ++j) {
    if (mask != nullptr && !mask[j]) continue;
    if (z[j] == T(1)) {
      if (worst_in < 0 || x[j] <= x[worst_in]) worst_in = j;
    } else if (best_out < 0 || x[j] > x[best_out]) {
      best_out = j;
    }
  }
  for (int64_t j = 0; j < n; ++j) {
    const auto at = static_cast<size_t>(j);
    const int64_t partner = z[j] == T(1) ? best_out : worst_in;
    swaps.partner[at] = partner;
    if (partner < 0) continue;
    swaps.threshold[at] = x[partner];
    swaps.difference[at] = static_cast<double>(d[j]) - static_cast<double>(d[partner]);
  }
  return swaps;
}

}  // namespace aimle::cases
