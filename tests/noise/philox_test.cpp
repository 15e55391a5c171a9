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

// The known answers of curand_init and curand4 of CUDA 13.0, compiled for the host.
TEST(Philox, DrawnKeysAreCurandsOwn) {
  struct Answer {
    uint64_t seed, offset, first, second;
  };
  for (const Answer& answer : std::to_array<Answer>(
           {{0, 0, 0x6627e8d5e169c58d, 0x844515e1f08d6eaa},
            {1, 0, 0xe3e80670e50a0ebc, 0x07071c12428264b6},
            {42, 4, 0xfcdb212753ba6cfd, 0x20ff9139fdd21d94},
            {67280421310721, 8, 0x4db532b149aace70, 0xe4208514b7bea2f1},
            {0xfedcba9876543210, 0x3fffffff8, 0x8b2ac680781677fc, 0x48a67ded96734b97},
            {~uint64_t{0}, ~uint64_t{3}, 0x95a880dd95be01c8, 0x2be75867f9c73984}})) {
    const Key key = drawn_key(answer.seed, answer.offset);
    EXPECT_EQ(key.seed, answer.first) << "seed " << answer.seed << ", offset " << answer.offset;
    EXPECT_EQ(key.stream, answer.second) << "seed " << answer.seed << ", offset " << answer.offset;
  }
}

}  // namespace
}  // namespace aimle
