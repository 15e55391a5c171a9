#include "experiments/process/digest.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

namespace aimle::experiments {
namespace {

// Golden values of the package xxhash 3.
TEST(Digest, IsXxh64) {
  const std::map<size_t, std::string> expected = {
      {0, "ef46db3751d8e999"},   {1, "f592c0c7639c4cb6"},  {3, "22c08528601d4f27"},
      {4, "fb1e5cf2f1ae4d95"},   {8, "57cb2b7521f3e21a"},  {31, "e4a0e629e519a4ae"},
      {32, "cc6b8aaada790b2d"},  {63, "bf9f0ba3cf95b28a"}, {100, "4826e367566ea023"},
      {199, "c2f64bc669817a94"},
  };
  std::string bytes;
  for (int i = 0; i < 199; ++i) bytes.push_back(static_cast<char>(37 * i + 11));
  for (const auto& [size, digest] : expected) {
    EXPECT_EQ(xxh64_hex(std::string_view(bytes).substr(0, size)), digest) << size;
  }
}

}  // namespace
}  // namespace aimle::experiments
