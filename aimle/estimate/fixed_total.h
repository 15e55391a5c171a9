// Sums over a whole batch in a fixed order: chunks of kSumChunk terms, each in the order of
// fixed_sum.h, then their sums in the same way, until one is left. On a GPU a warp sums a chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "aimle/estimate/fixed_sum.h"

namespace aimle {

inline constexpr int64_t kSumChunk = 1024;

/// sum over j in [0, n) of term(j), in the fixed order.
template <class Term>
double fixed_total(int64_t n, Term term) {
  const auto chunk_sums = [](int64_t count, const auto& of) {
    std::vector<double> sums;
    for (int64_t begin = 0; begin < count; begin += kSumChunk) {
      const int64_t length = count - begin < kSumChunk ? count - begin : kSumChunk;
      sums.push_back(fixed_sum(length, [&](int64_t j) { return of(begin + j); }));
    }
    return sums;
  };
  std::vector<double> sums = chunk_sums(n, term);
  while (sums.size() > 1) {
    sums = chunk_sums(static_cast<int64_t>(sums.size()),
                      [&](int64_t j) { return sums[static_cast<size_t>(j)]; });
  }
  return sums.empty() ? 0.0 : sums[0];
}

}  // namespace aimle
