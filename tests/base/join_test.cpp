#include "aimle/base/join.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace aimle {
namespace {

TEST(Join, PutsTheSeparatorBetweenTheParts) {
  const std::vector<std::string> none;
  EXPECT_EQ(join(none, ", "), "");
  EXPECT_EQ(join(std::vector<std::string>{"a"}, ", "), "a");
  EXPECT_EQ(join(std::vector<std::string>{"a", "b", "c"}, ", "), "a, b, c");
  EXPECT_EQ(join(std::vector<std::string>{"", "", "c"}, ","), ",,c");
}

TEST(Join, TurnsPartsIntoText) {
  const std::vector<int> shape = {2, 3};
  EXPECT_EQ(join(shape, "x", [](int size) { return std::to_string(size); }), "2x3");
}

}  // namespace
}  // namespace aimle
