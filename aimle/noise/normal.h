// Standard normal noise.
//
//   x = Phi^-1(u);   mean 0, variance 1
//
// By symmetry only the absolute value of the quantile at the tail probability p <= 1/2 is needed.
// With v = 1 - 2p it is v times a smooth function of w = -log(1 - v^2) = -log(4 p (1 - p)) (Giles,
// "Approximating the erfinv function", GPU Computing Gems 2, 2011); one ratio of polynomials covers
// the whole range, so there is neither a branch nor a square root.
//
// Symmetric: flipping the top bit of the word flips the sign. Values lie in [-6.34, 6.34]; they are
// within 5e-7 (1 + |x|) of the exact quantile.
#pragma once

#include "aimle/noise/math.h"

namespace aimle {

template <class Word>
AIMLE_HD auto normal(Word word) {
  const auto p = tail_probability(word);
  using Float = std::remove_const_t<decltype(p)>;
  const Float v = 1.0f - 2.0f * p;
  const Float w = -log_positive(4.0f * p * (1.0f - p));

  Float top = Float(0x1.ec5d36p-16f);
  top = fma(top, w, Float(0x1.10c354p-10f));
  top = fma(top, w, Float(0x1.8e3c22p-7f));
  top = fma(top, w, Float(0x1.760256p-4f));
  top = fma(top, w, Float(0x1.d3c576p-2f));
  top = fma(top, w, Float(0x1.40d940p+0f));

  Float bottom = Float(0x1.0c300ep-20f);
  bottom = fma(bottom, w, Float(0x1.6a69dep-13f));
  bottom = fma(bottom, w, Float(0x1.3a8a78p-9f));
  bottom = fma(bottom, w, Float(0x1.0dad58p-5f));
  bottom = fma(bottom, w, Float(0x1.a49bd0p-4f));
  bottom = fma(bottom, w, Float(1.0f));

  const Float size = v * (top / bottom);
  return select(upper_half(word), size, -size);
}

}  // namespace aimle
