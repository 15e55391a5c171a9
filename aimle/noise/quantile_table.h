// A quantile function as a table: one 32-bit word in, one float out, no logarithm.
//
// The top bit of the word selects the tail, the other 31 bits w give f = w + 1/2 in [1/2, 2^31],
// with tail probability p = f 2^-32. Exponent and leading mantissa bits of the float f select a
// cell, the rest of the mantissa is the coordinate t in [-1/2, 1/2) inside it, and each cell stores
// the cubic c0 + t (c1 + t (c2 + t c3)) of the quantile. Cells shrink with p, so both tails are
// resolved to 2^-32. The layout is [tail, cell, coefficient]: 32 octaves of cells for each tail,
// lower tail first, and after each tail one cell for f = 2^31 itself, which w reaches by rounding.
#pragma once

#include "aimle/noise/math.h"

namespace aimle {

inline constexpr int kQuantileCellBits = 3;
inline constexpr int kQuantileCellsPerOctave = 1 << kQuantileCellBits;
inline constexpr int kQuantileOctaves = 32;
inline constexpr int kQuantileCellsPerTail = kQuantileOctaves * kQuantileCellsPerOctave + 1;
inline constexpr int kQuantileCoefficients = 4;
inline constexpr int kQuantileTableSize = 2 * kQuantileCellsPerTail * kQuantileCoefficients;

inline constexpr int kQuantileCellShift = 23 - kQuantileCellBits;
/// The bits of f = 1/2, shifted: the number of the first cell.
inline constexpr uint32_t kQuantileFirstCell = 0x3f000000u >> kQuantileCellShift;

struct QuantileCell {
  uint32_t index;  // in [0, 2 kQuantileCellsPerTail)
  float t;         // in [-1/2, 1/2)
};

AIMLE_HD QuantileCell quantile_cell(uint32_t word) {
  const float f = static_cast<float>(static_cast<int32_t>(word & 0x7fffffffu)) + 0.5f;
  const uint32_t bits = float_bits(f);
  const uint32_t tail = upper_half(word) & kQuantileCellsPerTail;
  const uint32_t fraction = (bits << kQuantileCellBits) & 0x007fffffu;
  return {(bits >> kQuantileCellShift) - kQuantileFirstCell + tail,
          float_from_bits(fraction | 0x3f800000u) - 1.5f};
}

AIMLE_HD float look_up_quantile(const float* table, uint32_t word) {
  const QuantileCell cell = quantile_cell(word);
  const float* c = table + cell.index * kQuantileCoefficients;
  return fma(fma(fma(c[3], cell.t, c[2]), cell.t, c[1]), cell.t, c[0]);
}

}  // namespace aimle
