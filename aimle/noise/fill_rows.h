// The vector versions of fill_rows, one per instruction set (rows_vector.h).
#pragma once

#include "aimle/noise/noise.h"

namespace aimle {

namespace avx2 {

/// fill_rows after its checks, for count > 0, n > 0 and any kind except kNone.
void fill_rows(const NoiseSource& source, Key key, const NoiseRows& rows, float* out);

/// Turns words, whose bits are stored in floats, into noise, in place: `count` of them rounded up
/// to whole groups of 64. 64-byte aligned.
void words_to_noise(const NoiseSource& source, float* values, int64_t count);

}  // namespace avx2

namespace avx512 {

void fill_rows(const NoiseSource& source, Key key, const NoiseRows& rows, float* out);
void words_to_noise(const NoiseSource& source, float* values, int64_t count);

}  // namespace avx512

}  // namespace aimle
