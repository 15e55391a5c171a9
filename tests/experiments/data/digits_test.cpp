#include "experiments/data/digits.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace aimle::experiments {
namespace {

TEST(Digits, AreAFunctionOfSeedAndNumber) {
  const Images all = draw_digits(5, 0, 300);
  const Images part = draw_digits(5, 100, 50);
  EXPECT_TRUE(std::equal(part.pixels.begin(), part.pixels.end(), all.pixels.begin() + 100 * 784));
  EXPECT_NE(draw_digits(6, 0, 300).pixels, all.pixels);
}

// Golden values: the same digits on every machine.
TEST(Digits, AreTheSameEverywhere) {
  const Images images = draw_digits(0, 0, 1000);
  uint64_t hash = 0xcbf29ce484222325;
  for (const uint8_t pixel : images.pixels) hash = (hash ^ pixel) * 0x100000001b3;
  EXPECT_EQ(hash, 9522273441473856703U);
}

// A digit can be told from the others: the nearest mean image is that of its class far more often
// than one time in ten.
TEST(Digits, LookLikeTheirClasses) {
  const auto to_tensor = [](Images& images) {
    return at::from_blob(images.pixels.data(), {images.count, 784}, at::kByte).to(at::kFloat);
  };
  Images train = draw_digits(0, 0, 2000), test = draw_digits(1, 0, 500);
  const at::Tensor x = to_tensor(train), y = to_tensor(test);
  std::vector<at::Tensor> means;
  const at::Tensor labels = at::from_blob(train.labels.data(), {2000}, at::kByte);
  for (int c = 0; c < 10; ++c) {
    const at::Tensor own = x.index_select(0, labels.eq(c).nonzero().squeeze(1));
    EXPECT_NEAR(static_cast<double>(own.size(0)), 200, 5 * std::sqrt(180.0)) << c;
    means.push_back(own.mean(0));
  }
  const at::Tensor guess = at::cdist(y, at::stack(means)).argmin(1);
  const at::Tensor truth = at::from_blob(test.labels.data(), {500}, at::kByte);
  EXPECT_GT(guess.eq(truth).to(at::kFloat).mean().item<double>(), 0.7);
}

}  // namespace
}  // namespace aimle::experiments
