// Words on which distributions are tested.
#pragma once

#include <cstdint>
#include <vector>

namespace aimle {

/// Ends and middle with their neighbours, every power of two in both halves with its neighbours,
/// `per_octave` words spread over each octave of tail probability, and every `stride`-th word.
inline std::vector<uint32_t> test_words(int per_octave, uint64_t stride) {
  std::vector<uint32_t> words;
  const auto both_halves = [&](uint32_t w) {
    words.push_back(w & 0x7fffffffu);
    words.push_back(w | 0x80000000u);
  };
  for (uint32_t i = 0; i < 200; ++i) {
    both_halves(i);
    both_halves(0x7fffffffu - i);
  }
  for (int octave = 0; octave < 31; ++octave) {
    const uint32_t power = 1u << octave;
    for (uint32_t i = 0; i < 4; ++i) {
      both_halves(power + i);
      both_halves(power - i);
    }
    for (int i = 0; i < per_octave; ++i) {
      both_halves(power + static_cast<uint32_t>(power * ((i + 0.5) / per_octave)));
    }
  }
  for (uint64_t word = 0; stride > 0 && word < uint64_t{1} << 32; word += stride) {
    words.push_back(static_cast<uint32_t>(word));
  }
  return words;
}

/// The probability that a word stands for in its tail, exactly.
inline double exact_tail(uint32_t word) { return ((word & 0x7fffffffu) + 0.5) * 0x1p-32; }
inline bool is_upper(uint32_t word) { return (word >> 31) != 0; }

}  // namespace aimle
