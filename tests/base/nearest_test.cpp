#include "aimle/base/nearest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace aimle {
namespace {

TEST(Nearest, DistancesByHand) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("aimel", "aimle"), 1);
  EXPECT_EQ(edit_distance("ca", "abc"), 3);  // restricted: what was swapped stays
}

/// The same recurrence without a table.
int plain_distance(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return static_cast<int>(std::max(a.size(), b.size()));
  const auto shorter = [](std::string_view s, size_t by) { return s.substr(0, s.size() - by); };
  int best = plain_distance(shorter(a, 1), shorter(b, 1)) + (a.back() == b.back() ? 0 : 1);
  best = std::min(best, plain_distance(shorter(a, 1), b) + 1);
  best = std::min(best, plain_distance(a, shorter(b, 1)) + 1);
  if (a.size() > 1 && b.size() > 1 && a.back() == b[b.size() - 2] && a[a.size() - 2] == b.back()) {
    best = std::min(best, plain_distance(shorter(a, 2), shorter(b, 2)) + 1);
  }
  return best;
}

TEST(Nearest, AgreesWithThePlainRecurrence) {
  std::mt19937 random(7);
  const auto word = [&] {
    std::string result(random() % 6, 'a');
    for (char& c : result) c = static_cast<char>('a' + random() % 3);
    return result;
  };
  for (int i = 0; i < 1000; ++i) {
    const std::string a = word(), b = word();
    ASSERT_EQ(edit_distance(a, b), plain_distance(a, b))
        << "seed 7, " << i << ": " << a << " " << b;
  }
}

TEST(Nearest, SuggestsWhatWasMeantOrNothing) {
  const std::vector<std::string> known = {"aimle", "imle", "imle_central", "sfe"};
  EXPECT_EQ(nearest_name("aimel", known), "aimle");
  EXPECT_EQ(nearest_name("IMLE", known), "imle");
  EXPECT_EQ(nearest_name("imle-centrel", known), "imle_central");
  EXPECT_EQ(nearest_name("qqq", known), "");
  EXPECT_EQ(nearest_name("", known), "");
  EXPECT_EQ(did_you_mean("sfee", known), "; did you mean 'sfe'?");
  EXPECT_EQ(did_you_mean("zzzz", known), "");
}

}  // namespace
}  // namespace aimle
