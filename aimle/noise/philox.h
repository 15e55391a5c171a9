// Philox4x32-10: a counter-based random generator, a pure function from (counter, key) to four
// 32-bit words. Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <cstdint>

#include "aimle/base/host_device.h"

namespace aimle {

struct PhiloxWords {
  uint32_t w[4];
};

inline constexpr uint32_t kPhiloxM0 = 0xD2511F53, kPhiloxM1 = 0xCD9E8D57;
inline constexpr uint32_t kPhiloxW0 = 0x9E3779B9, kPhiloxW1 = 0xBB67AE85;
inline constexpr int kPhiloxRounds = 10;

AIMLE_HD PhiloxWords philox4x32(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t k0,
                                uint32_t k1) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(kPhiloxM0) * c0;
    const uint64_t p1 = static_cast<uint64_t>(kPhiloxM1) * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += kPhiloxW0;
    k1 += kPhiloxW1;
  }
  return {{c0, c1, c2, c3}};
}

/// Passed by users to reproduce a draw; an int64 tensor in Torch: [2], or [3] with `first`.
struct Key {
  uint64_t seed = 0;
  uint64_t stream = 0;
  uint64_t first = 0;  // the number of the call's first instance: for a part of a larger batch
};

/// The four words for elements 4·block ... 4·block + 3 of sample s of instance b: element j uses
/// word j & 3 of block j >> 2. The whole library relies on this definition of noise.
AIMLE_HD PhiloxWords noise_words(Key key, uint32_t b, uint32_t s, uint32_t block) {
  return philox4x32(block, s, b + static_cast<uint32_t>(key.first),
                    static_cast<uint32_t>(key.stream), static_cast<uint32_t>(key.seed),
                    static_cast<uint32_t>(key.seed >> 32));
}

/// A key from a Philox-based generator such as CUDA's curand: subsequences 0 and 1 of `seed`, from
/// `offset` (a multiple of 4) on, 64 bits of each. PyTorch's GPU generator writes these two numbers
/// into an int64 [2], and advances its offset by kOffsetOfKey.
inline constexpr uint64_t kOffsetOfKey = 4;
inline Key drawn_key(uint64_t seed, uint64_t offset) {
  const auto half = [&](uint32_t subsequence) {
    const uint64_t block = offset / 4;
    const PhiloxWords words =
        philox4x32(static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), subsequence, 0,
                   static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
    return static_cast<uint64_t>(words.w[0]) << 32 | words.w[1];
  };
  return {.seed = half(0), .stream = half(1)};
}

}  // namespace aimle
