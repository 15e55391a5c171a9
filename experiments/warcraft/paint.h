// Pictures of terrain, for terrain.h. Deterministic: uses only integer hashes and exactly rounded
// arithmetic.
#pragma once

#include <cstdint>
#include <span>

#include "experiments/warcraft/terrain.h"

namespace aimle::experiments::warcraft {

/// 64 well-mixed bits of (seed, what, x, y).
inline uint64_t hash(uint64_t seed, uint32_t what, int64_t x, int64_t y) {
  uint64_t h =
      seed ^ (uint64_t{what} << 58) ^ (static_cast<uint64_t>(x) << 29) ^ static_cast<uint64_t>(y);
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EB;
  return h ^ (h >> 31);
}

/// The same as two numbers in [-1, 1).
struct Pair {
  float first;
  float second;
};
inline Pair pair(uint64_t seed, uint32_t what, int64_t x, int64_t y) {
  const uint64_t h = hash(seed, what, x, y);
  const auto number = [](uint64_t bits) {
    return static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(bits))) * 0x1p-31f;
  };
  return {number(h), number(h >> 32)};
}

/// Rounds down. std::floor is a function call if the processor has no instruction for it.
inline int32_t floor_int(float x) {
  const auto whole = static_cast<int32_t>(x);
  return whole - (static_cast<float>(whole) > x ? 1 : 0);
}

/// Two fields of smooth noise in [-1, 1]: random values at the whole numbers, eased between them.
Pair smooth_noise(uint64_t seed, uint32_t what, float x, float y);

/// Paints K x K cells into [8K, 8K, 3].
void paint(std::span<const Terrain> terrain, int64_t cells, uint64_t seed, uint8_t* image);

}  // namespace aimle::experiments::warcraft
