#include "experiments/process/bytes_in_json.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace aimle::experiments {
namespace {

TEST(JsonText, HoldsAnyBytes) {
  EXPECT_EQ(to_json_text("café\\ü"), "café\\ü");
  EXPECT_EQ(to_json_text("caf\xe9"), "caf\\xe9");
  EXPECT_EQ(to_json_text("\\xe9"), "\\x5cxe9");
  std::mt19937 random(20230207);
  const std::string alphabet = "\\x5ce9\xe2\x82\xac\xed\xa0\x80\xf4\xff";
  for (int trial = 0; trial < 20'000; ++trial) {
    std::string bytes;
    for (size_t i = random() % 9; i > 0; --i) bytes += alphabet[random() % alphabet.size()];
    const std::string text = to_json_text(bytes);
    const auto read = nlohmann::json::parse(nlohmann::json(text).dump()).get<std::string>();
    EXPECT_EQ(from_json_text(read), bytes);
  }
}

}  // namespace
}  // namespace aimle::experiments
