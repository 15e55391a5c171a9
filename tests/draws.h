// Random integers for tests, the same on every platform.
#pragma once

#include <cstdint>
#include <random>

namespace aimle::draws {

using Rng = std::mt19937_64;

/// Uniform on the integers low .. high, both included.
inline int64_t uniform(Rng& rng, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(rng() % static_cast<uint64_t>(high - low + 1));
}

inline bool one_in(Rng& rng, int64_t n) { return uniform(rng, 1, n) == 1; }

}  // namespace aimle::draws
