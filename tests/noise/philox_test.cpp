#include "aimle/noise/philox.h"

#include <gtest/gtest.h>

#include <array>

namespace aimle {
namespace {

using Words = std::array<uint32_t, 4>;

Words philox(Words c, uint32_t k0, uint32_t k1) {
  return std::to_array(philox4x32(c[0], c[1], c[2], c[3], k0, k1).w);
}

// The known answers of Random123, the authors' library.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, ~0u, ~0u),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, NoiseWordsFollowTheContract) {
  const Key key{.seed = 0x0123456789abcdef, .stream = 0xfedcba9876543210};
  EXPECT_EQ(std::to_array(noise_words(key, /*b=*/7, /*s=*/5, /*block=*/3).w),
            philox({3, 5, 7, 0x76543210}, 0x89abcdef, 0x01234567));
}

}  // namespace
}  // namespace aimle
