// Standard logistic noise: the difference of two independent Gumbel variables.
//
//   F(x) = 1 / (1 + exp(-x)),   x = log(u / (1 - u));   mean 0, variance pi^2 / 3
//
// Symmetric: flipping the top bit of the word flips the sign. Values lie in [-22.88, 22.88]; they
// are within 5e-7 (1 + |x|) of the exact quantile.
#pragma once

#include "aimle/noise/math.h"

namespace aimle {

template <class Word>
AIMLE_HD auto logistic(Word word) {
  const auto p = tail_probability(word);
  const auto size = log_positive((1.0f - p) / p);
  return select(upper_half(word), size, -size);
}

}  // namespace aimle
