// The AVX2 form of fill_rows.
//
// The Philox blocks of all rows stand in one line: blocks 0, 1, ... of the first row, then those of
// the next row, eight of them at a time across the lanes. A chunk of blocks becomes words, packed
// as the rows are (the unused words of a row's last block lie where the next row begins, whose own
// first block then writes over them), and the words, one by one, become noise. So short rows and
// rows of odd length cost little more per element than long ones.
#pragma once

#include "aimle/noise/noise.h"

namespace aimle::avx2 {

/// Turns 8 * groups words, their bits given as floats, into noise, in place. 32-byte aligned.
void words_to_noise(const NoiseSource& source, float* values, int64_t groups);

/// fill_rows after its checks, for count > 0, n > 0 and any kind but kNone.
void fill_rows(const NoiseSource& source, Key key, const NoiseRows& rows, float* out);

}  // namespace aimle::avx2
