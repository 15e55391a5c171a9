#include "aimle/base/shown_value.h"

#include <gtest/gtest.h>

#include <string>

namespace aimle {
namespace {

TEST(ShownValue, IsShortAndOnOneLine) {
  EXPECT_EQ(shown_value("0.5"), "0.5");
  EXPECT_EQ(shown_value("a\nb\x1b"), "a\\nb\\x1b");
  EXPECT_EQ(shown_value(std::string(5000, '9')), std::string(60, '9') + "… (5000 characters)");
  EXPECT_EQ(shown_value(std::string(59, '9') + "€€"), std::string(59, '9') + "… (65 characters)");
}

}  // namespace
}  // namespace aimle
