// The uniform numbers of exact samples: number j of sample s of instance b, in (0, 1), with 52
// random bits: words 2 (j & 1) and 2 (j & 1) + 1 of Philox block j >> 1, counted as in
// noise/philox.h. The
// same key can therefore be used for noise or for exact samples, but not for both.
#pragma once

#include "aimle/noise/philox.h"

namespace aimle {

AIMLE_HD double uniform(Key key, int64_t b, int64_t s, int64_t j) {
  const PhiloxWords words = noise_words(key, static_cast<uint32_t>(b), static_cast<uint32_t>(s),
                                        static_cast<uint32_t>(j >> 1));
  const uint64_t high = words.w[2 * (j & 1)];
  const uint64_t low = words.w[2 * (j & 1) + 1];
  return (static_cast<double>(high << 20 | low >> 12) + 0.5) * 0x1p-52;
}

}  // namespace aimle
