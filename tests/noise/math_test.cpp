#include "aimle/noise/math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace aimle {
namespace {

// Moderate exponents, and sums that nearly cancel or nearly tie, where double rounding would show.
TEST(NoiseMath, FmaIsTheSameWithoutHardware) {
  std::mt19937_64 rng(5);
  std::uniform_int_distribution<int> exponent(-40, 40), small(-4, 4);
  const auto draw = [&] {
    const auto mantissa = static_cast<double>(static_cast<int32_t>(rng()));
    return static_cast<float>(std::ldexp(mantissa, exponent(rng) - 31));
  };
  for (int trial = 0; trial < 1'000'000; ++trial) {
    const float a = draw(), b = draw();
    float c = draw();
    if (trial % 4 == 1) c = -a * b;
    if (trial % 4 == 2) c = std::ldexp(a * b, 24 + small(rng));
    if (trial % 4 == 3) c = std::ldexp(std::rint(a), small(rng) - 20);
    const float expected = std::fma(a, b, c);
    ASSERT_EQ(float_bits(fma_without_hardware(a, b, c) + 0.0f), float_bits(expected + 0.0f))
        << a << " * " << b << " + " << c;
    ASSERT_EQ(float_bits(aimle::fma(a, b, c)), float_bits(expected));
  }
}

TEST(NoiseMath, FmaRoundsOnceAtATie) {
  // 1 + 2^-24 is a tie between 1 and its successor; what breaks it is below double's last bit.
  const float tie = 1.0f + 0x1p-12f;  // tie * tie = 1 + 2^-11 + 2^-24
  EXPECT_EQ(fma_without_hardware(tie, tie, 0x1p-70f), 1.0f + 0x1p-11f + 0x1p-23f);
  EXPECT_EQ(fma_without_hardware(tie, tie, -0x1p-70f), 1.0f + 0x1p-11f);
  EXPECT_EQ(fma_without_hardware(-tie, tie, 0x1p-70f), -1.0f - 0x1p-11f);
  EXPECT_EQ(fma_without_hardware(-tie, tie, -0x1p-70f), -1.0f - 0x1p-11f - 0x1p-23f);
}

TEST(NoiseMath, LogIsAccurate) {
  for (double exponent = -34; exponent < 34; exponent += 1.7e-4) {
    const auto value = static_cast<float>(std::exp2(exponent));
    const double exact = std::log(static_cast<double>(value));
    ASSERT_NEAR(log_positive(value), exact, 1e-7 * (1 + std::abs(exact))) << value;
  }
  for (double exponent = -34; exponent <= -1; exponent += 1e-4) {
    const auto f = static_cast<float>(-std::exp2(exponent));
    const double exact = std::log1p(static_cast<double>(f));
    ASSERT_NEAR(log1p_half(f), exact, 1e-7 * std::abs(exact)) << f;
  }
}

TEST(NoiseMath, TailProbabilityCoversBothHalves) {
  EXPECT_EQ(tail_probability(0u), 0x1p-33f);
  EXPECT_EQ(tail_probability(0x80000000), 0x1p-33f);
  EXPECT_EQ(tail_probability(0x7fffffff), 0.5f);
  EXPECT_EQ(tail_probability(0xffffffff), 0.5f);
  EXPECT_EQ(upper_half(0x7fffffff), 0u);
  EXPECT_EQ(upper_half(0x80000000), ~0u);
}

}  // namespace
}  // namespace aimle
