// Gumbel, logistic and normal noise, word by word, against the exact quantile.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numbers>

#include "aimle/noise/gumbel.h"
#include "aimle/noise/logistic.h"
#include "aimle/noise/normal.h"
#include "tests/noise/words.h"

namespace aimle {
namespace {

constexpr double kTolerance = 5e-7;  // times 1 + |x|

TEST(Gumbel, MatchesTheExactQuantile) {
  for (const uint32_t word : test_words(3000, 10'007)) {
    const double p = exact_tail(word);
    const double x = -std::log(is_upper(word) ? -std::log1p(-p) : -std::log(p));
    ASSERT_NEAR(gumbel(word), x, kTolerance * (1 + std::abs(x))) << std::hex << word;
  }
}

TEST(Logistic, MatchesTheExactQuantile) {
  for (const uint32_t word : test_words(3000, 10'007)) {
    const double p = exact_tail(word);
    const double size = std::log1p(-p) - std::log(p);
    const double x = is_upper(word) ? size : -size;
    ASSERT_NEAR(logistic(word), x, kTolerance * (1 + size)) << std::hex << word;
  }
}

/// The exact quantile by Newton steps on the tail probability, from near it.
double exact_normal(uint32_t word, double near) {
  double size = std::abs(near);
  for (int step = 0; step < 3; ++step) {
    const double tail = 0.5 * std::erfc(size / std::numbers::sqrt2);
    const double density = std::exp(-size * size / 2) / std::sqrt(2 * std::numbers::pi);
    size += (tail - exact_tail(word)) / density;
  }
  return is_upper(word) ? size : -size;
}

TEST(Normal, MatchesTheExactQuantile) {
  for (const uint32_t word : test_words(3000, 10'007)) {
    const double x = exact_normal(word, normal(word));
    ASSERT_NEAR(normal(word), x, kTolerance * (1 + std::abs(x))) << std::hex << word;
  }
}

TEST(SymmetricNoise, TheTopBitIsTheSign) {
  for (const uint32_t word : test_words(100, 1'000'003)) {
    ASSERT_EQ(float_bits(normal(word)) ^ float_bits(normal(word ^ 0x80000000u)), 0x80000000u);
    ASSERT_EQ(float_bits(logistic(word)) ^ float_bits(logistic(word ^ 0x80000000u)), 0x80000000u);
  }
}

struct Golden {
  uint32_t word, gumbel, normal, logistic;
};
constexpr std::array kGolden = {
    Golden{0x00000000, 0xc04851d5, 0xc0cad08d, 0xc1b6fda9},
    Golden{0x00000001, 0xc0452b66, 0xc0c55365, 0xc1ae33b4},
    Golden{0x00001234, 0xc027abd3, 0xc097949e, 0xc15bbdc5},
    Golden{0x00345678, 0xbffb7aaa, 0xc04a02ae, 0xc0e43803},
    Golden{0x12345678, 0xbf78dc16, 0xbfbbd932, 0xc02476b6},
    Golden{0x40000000, 0xbea73c9b, 0xbf2cab5b, 0xbf8c9f54},
    Golden{0x7fffffff, 0x3ebba795, 0x80000000, 0x80000000},
    Golden{0x80000000, 0x41b6fda9, 0x40cad08d, 0x41b6fda9},
    Golden{0x80000001, 0x41ae33b4, 0x40c55365, 0x41ae33b4},
    Golden{0x9abcdef0, 0x400d15bc, 0x3fa0d926, 0x400985c2},
    Golden{0xc0000000, 0x3f9f79a0, 0x3f2cab5b, 0x3f8c9f54},
    Golden{0xdeadbeef, 0x3f45cd91, 0x3eaa20b5, 0x3f086cba},
    Golden{0xffffffff, 0x3ebba795, 0x00000000, 0x00000000},
};

TEST(Quantile, GoldenValues) {
  for (const Golden& golden : kGolden) {
    EXPECT_EQ(float_bits(gumbel(golden.word)), golden.gumbel) << std::hex << golden.word;
    EXPECT_EQ(float_bits(normal(golden.word)), golden.normal) << std::hex << golden.word;
    EXPECT_EQ(float_bits(logistic(golden.word)), golden.logistic) << std::hex << golden.word;
  }
}

}  // namespace
}  // namespace aimle
