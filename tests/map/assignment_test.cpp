#include "aimle/map/assignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "tests/message_of.h"

namespace aimle {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// The column of every row, -1 where it has none; empty where the row is refused.
template <class T>
std::vector<int> columns(const Assignment& solver, const std::vector<T>& scores,
                         Status expected = Status::kOk) {
  std::vector<T> z(scores.size());
  Status status{};
  solve(solver, Rows<T>{.count = 1, .scores = scores.data(), .z = z.data(), .status = &status});
  EXPECT_EQ(status, expected) << describe(status);
  if (status != Status::kOk) return {};
  std::vector<int> found(static_cast<size_t>(solver.rows), -1);
  for (size_t e = 0; e < z.size(); ++e) {
    const auto width = static_cast<size_t>(solver.columns);
    if (z[e] == 1) found[e / width] = static_cast<int>(e % width);
  }
  return found;
}

using Columns = std::vector<int>;

TEST(Assignment, FindsTheBestMatching) {
  // The greedy answer, 9 first, is 9 + 1 + 2.
  EXPECT_EQ(columns<float>({.rows = 3, .columns = 3}, {9, 8, 1, 8, 1, 2, 1, 3, 2}),
            (Columns{1, 0, 2}));
}

TEST(Assignment, LeavesRowsOrColumnsOut) {
  EXPECT_EQ(columns<float>({.rows = 2, .columns = 4}, {1, 2, 3, 4, 1, 2, 3, 9}), (Columns{2, 3}));
  EXPECT_EQ(columns<float>({.rows = 4, .columns = 2}, {1, 1, 5, 2, 3, 4, 1, 1}),
            (Columns{-1, 0, 1, -1}));
}

TEST(Assignment, GivesTheLowestColumnToTheFirstRow) {
  EXPECT_EQ(columns<float>({.rows = 3, .columns = 3}, std::vector<float>(9)), (Columns{0, 1, 2}));
  EXPECT_EQ(columns<float>({.rows = 3, .columns = 2}, std::vector<float>(6)), (Columns{0, 1, -1}));
  // Both rows of columns sum to 3.
  EXPECT_EQ(columns<float>({.rows = 2, .columns = 2}, {1, 2, 1, 2}), (Columns{0, 1}));
}

// 2^24 + 1 is not a float: as floats both sums would be 2^24.
TEST(Assignment, DoesNotRoundSums) {
  const float large = 0x1p24f;
  EXPECT_EQ(columns<float>({.rows = 2, .columns = 2}, {large, large, 1, 0}), (Columns{1, 0}));
}

TEST(Assignment, TakesAsManyInfinitiesAsItCan) {
  const float inf = std::numeric_limits<float>::infinity();
  // Two infinities on the diagonal rather than one and a large number.
  EXPECT_EQ(columns<float>({.rows = 2, .columns = 2}, {inf, inf, 1e30f, inf}), (Columns{0, 1}));
  EXPECT_EQ(columns<double>({.rows = 2, .columns = 2}, {-kInf, 1, 1, kInf}), (Columns{1, 0}));
}

TEST(Assignment, RefusesWhatHasNoMatching) {
  const Assignment solver{.rows = 2, .columns = 2};
  columns<double>(solver, {-kInf, 1, -kInf, 1}, Status::kTooFewEntries);
  columns<double>(solver, {-kInf, 1, -kInf, std::nan("")}, Status::kNaN);
}

TEST(Assignment, ListsItsStructuresInTheOrderOfTies) {
  const Assignment solver{.rows = 3, .columns = 2};
  const std::vector<uint8_t> all = solver.structures();
  ASSERT_EQ(all.size(), 6 * 6u);
  EXPECT_EQ(static_cast<double>(all.size() / 6), solver.structure_count());
  EXPECT_EQ(std::vector<uint8_t>(all.begin(), all.begin() + 6),
            (std::vector<uint8_t>{1, 0, 0, 1, 0, 0}));
  for (size_t i = 6; i < all.size(); i += 6) {
    EXPECT_TRUE(std::lexicographical_compare(
        all.begin() + static_cast<long>(i), all.begin() + static_cast<long>(i) + 6,
        all.begin() + static_cast<long>(i) - 6, all.begin() + static_cast<long>(i)));
  }
}

TEST(Assignment, NamesBadSizes) {
  EXPECT_EQ(
      message_of<std::invalid_argument>([] { Assignment{.rows = 3, .columns = 0}.validate(); }),
      "[aimle::assignment] expected 1 to 16384 rows and columns but got theta of shape "
      "[3, 0]");
  EXPECT_EQ(message_of<std::invalid_argument>(
                [] { (void)Assignment{.rows = 11, .columns = 11}.structures(); }),
            "[aimle::enumerate] expected at most 1000000 structures but there are more of 11 rows "
            "and 11 columns");
}

}  // namespace
}  // namespace aimle
