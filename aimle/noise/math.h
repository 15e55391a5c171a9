// The arithmetic of the noise: the same bits on every host and device.
//
// Only IEEE operations whose result is prescribed (+, -, *, /, fma, conversion of integers), bit
// casts and integers; no libm. Polynomials are fitted by scripts/fit_noise_polynomials.py. Code
// that includes this must be compiled without contraction (-ffp-contract=off, nvcc: -fmad=false).
// Everything is branch-free, and written for any type of word and float with these operations:
// scalars, or the lanes of several vectors (lanes.h).
#pragma once

#include <cstdint>
#include <type_traits>

#include "aimle/base/host_device.h"

namespace aimle {

AIMLE_HD uint32_t float_bits(float value) { return __builtin_bit_cast(uint32_t, value); }

AIMLE_HD float float_from_bits(uint32_t bits) { return __builtin_bit_cast(float, bits); }

/// a b + c, rounded once, for finite values, on processors without the instruction. The product of
/// two floats is exact in double; the sum is rounded to odd there, so that the final rounding to
/// float is correct (Boldo & Melquiond, "Emulation of FMA and correctly rounded sums", IEEE
/// Transactions on Computers, 2008).
AIMLE_HD float fma_without_hardware(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double addend = static_cast<double>(c);
  const double sum = product + addend;
  const double part = sum - product;
  const double error = (product - (sum - part)) + (addend - part);
  const auto bits = __builtin_bit_cast(uint64_t, sum);
  const uint64_t rounded_away = (bits ^ __builtin_bit_cast(uint64_t, error)) >> 63;
  const uint64_t odd = (bits - rounded_away) | 1;
  return static_cast<float>(__builtin_bit_cast(double, error == 0 ? bits : odd));
}

/// a b + c, rounded once.
AIMLE_HD float fma(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#elif defined(__FMA__) || defined(__FP_FAST_FMAF)
  return __builtin_fmaf(a, b, c);
#else
  return fma_without_hardware(a, b, c);
#endif
}

/// `yes` where mask is all ones, `no` where it is zero.
AIMLE_HD float select(uint32_t mask, float yes, float no) {
  return float_from_bits((float_bits(yes) & mask) | (float_bits(no) & ~mask));
}

/// The float nearest to a word read as a signed integer.
AIMLE_HD float float_of_int(uint32_t word) {
  return static_cast<float>(static_cast<int32_t>(word));
}

/// A word of 32 random bits represents u in (0, 1): the top bit selects the half, the other 31 bits
/// w the distance of u from that half's end, p = (w + 1/2) 2^-32, so that both tails are resolved
/// to 2^-32. u = p in the lower half and 1 - p in the upper one; 0 < p <= 1/2.
template <class Word>
AIMLE_HD auto tail_probability(Word word) {
  return float_of_int(word & Word(0x7fffffffu)) * 0x1p-32f + 0x1p-33f;
}

/// All ones if the word represents u > 1/2.
template <class Word>
AIMLE_HD Word upper_half(Word word) {
  return Word(0u) - (word >> 31);
}

inline constexpr float kLn2 = 0x1.62e430p-1f;

/// log(1 + f) for f in [-1/2, 0], with a relative error below 1e-7.
template <class Float>
AIMLE_HD Float log1p_half(Float f) {
  Float r = Float(0x1.6a1f9cp+0f);
  r = fma(r, f, Float(0x1.a3bbc4p+0f));
  r = fma(r, f, Float(0x1.356df8p+0f));
  r = fma(r, f, Float(0x1.729612p-3f));
  r = fma(r, f, Float(0x1.0e04e0p-2f));
  r = fma(r, f, Float(-0x1.f30fe6p-3f));
  r = fma(r, f, Float(0x1.55a3a8p-2f));
  r = fma(r, f, Float(-0x1.fffec0p-2f));
  return fma(f * f, r, f);
}

/// A positive normal float as (1 + f) 2^exponent with f in [-1/2, 0).
template <class Float, class Word>
struct Binary {
  Float f;
  Word exponent;  // a signed integer
};
template <class Float>
AIMLE_HD auto split_binary(Float value) {
  const auto bits = float_bits(value);
  using Word = std::remove_const_t<decltype(bits)>;
  return Binary<Float, Word>{
      float_from_bits((bits & Word(0x007fffffu)) | Word(0x3f000000u)) - Float(1.0f),
      (bits >> 23) - Word(126u)};
}

/// log(value) of a positive normal float, within 1e-7 (1 + |log(value)|).
template <class Float>
AIMLE_HD Float log_positive(Float value) {
  const auto v = split_binary(value);
  return fma(float_of_int(v.exponent), Float(kLn2), log1p_half(v.f));
}

}  // namespace aimle
