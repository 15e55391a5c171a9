#include "aimle/map/grid_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "aimle/base/isa.h"
#include "tests/map/grid_path_cases.h"
#include "tests/map/grid_path_oracle.h"

namespace aimle {
namespace {

using Negative = GridPath::Negative;

std::vector<Isa> instruction_sets() {
  if (processor_has_avx2()) return {Isa::kPortable, Isa::kAvx2};
  return {Isa::kPortable};
}

/// Restores the instruction set that a test overrides.
class GridPathTest : public ::testing::Test {
 protected:
  void TearDown() override { use_isa(before_); }

 private:
  Isa before_ = isa();
};

template <class T>
struct Solved {
  std::vector<T> z;
  std::vector<Status> status;
};

template <class T>
Solved<T> solve_all(const GridPath& solver, int64_t count, const std::vector<T>& costs,
                    const bool* mask = nullptr) {
  Solved<T> out{std::vector<T>(costs.size(), T{-7}),
                std::vector<Status>(static_cast<size_t>(count), Status::kBadK)};
  solve(solver, Rows<T>{.count = count,
                        .scores = costs.data(),
                        .mask = mask,
                        .z = out.z.data(),
                        .status = out.status.data()});
  return out;
}

/// A row of z as "#.. .#. ..#".
template <class T>
std::string picture(const GridPath& solver, const T* z) {
  std::string text;
  for (int64_t j = 0; j < solver.size(); ++j) {
    if (j > 0 && j % solver.width == 0) text += ' ';
    text += z[j] == 1 ? '#' : z[j] == 0 ? '.' : '?';
  }
  return text;
}

template <class T>
std::string show(const GridPath& solver, const T* x, const bool* mask) {
  std::ostringstream text;
  text.precision(std::numeric_limits<T>::max_digits10);
  text << solver.height << " x " << solver.width << ", " << solver.neighbourhood
       << " neighbours, source " << solver.source_cell() << ", target " << solver.target_cell()
       << ", " << (solver.negative == Negative::kClip ? "clip" : "error");
  if (solver.size() > 900) return text.str();
  for (int64_t j = 0; j < solver.size(); ++j) {
    text << (j % solver.width == 0 ? "\n" : " ") << x[j] << (mask && !mask[j] ? "(masked)" : "");
  }
  return text.str();
}

/// Every row against the oracle, on both instruction sets.
template <class T>
void expect_oracle(const GridPath& solver, int64_t count, const std::vector<T>& costs,
                   const bool* mask, const std::string& label) {
  const int64_t n = solver.size();
  std::vector<oracle::GridPathAnswer<T>> want;
  for (int64_t r = 0; r < count; ++r) {
    want.push_back(oracle::grid_path(solver, costs.data() + r * n, mask ? mask + r * n : nullptr));
  }
  for (const Isa which : instruction_sets()) {
    use_isa(which);
    const Solved<T> got = solve_all(solver, count, costs, mask);
    for (int64_t r = 0; r < count; ++r) {
      const T* z = got.z.data() + r * n;
      const auto& expected = want[static_cast<size_t>(r)];
      const auto context = [&] {
        return label + ", " + std::string(name(which)) + ", row " + std::to_string(r) + " of " +
               std::to_string(count) + "\n" +
               show(solver, costs.data() + r * n, mask ? mask + r * n : nullptr) + "\ngot  " +
               picture(solver, z) + "\nwant " + picture(solver, expected.z.data());
      };
      ASSERT_EQ(got.status[static_cast<size_t>(r)], expected.status) << context();
      ASSERT_EQ(std::memcmp(z, expected.z.data(), static_cast<size_t>(n) * sizeof(T)), 0)
          << context();
    }
  }
}

template <class T>
class GridPathOf : public GridPathTest {
 protected:
  static constexpr T kInf = std::numeric_limits<T>::infinity();
  static constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();

  /// The path as a picture, or the status in words; equal on both instruction sets.
  std::string path(const GridPath& solver, const std::vector<T>& costs,
                   const bool* mask = nullptr) {
    std::vector<std::string> answers;
    for (const Isa which : instruction_sets()) {
      use_isa(which);
      const Solved<T> got = solve_all(solver, 1, costs, mask);
      answers.push_back(got.status[0] == Status::kOk ? picture(solver, got.z.data())
                                                     : std::string(describe(got.status[0])));
      for (const T z : got.z) EXPECT_EQ(std::isnan(z), got.status[0] != Status::kOk);
    }
    EXPECT_EQ(answers.front(), answers.back());
    return answers.front();
  }

  const std::string disconnected_{describe(Status::kDisconnected)};
  const std::string nan_{describe(Status::kNaN)};
  const std::string negative_{describe(Status::kNegativeCost)};
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(GridPathOf, Scalars);

TYPED_TEST(GridPathOf, GoesAroundTheHill) {
  const std::vector<TypeParam> costs = {1, 1,  1,  1,  //
                                        8, 9,  9,  1,  //
                                        1, 1,  1,  9,  //
                                        1, 11, 11, 9,  //
                                        9, 1,  1,  1};
  EXPECT_EQ(this->path({.height = 5, .width = 4}, costs), "###. ...# .##. #... .###");
  EXPECT_EQ(this->path({.height = 5, .width = 4, .neighbourhood = 4}, costs),
            "#... #... #... #... ####");
}

TYPED_TEST(GridPathOf, AnySourceAndTarget) {
  const std::vector<TypeParam> costs = {5, 1, 5,  //
                                        1, 5, 1,  //
                                        5, 1, 5};
  const auto from = [&](Cell source, Cell target) {
    return this->path({.height = 3, .width = 3, .source = source, .target = target}, costs);
  };
  EXPECT_EQ(from({2, 2}, {0, 0}), "##. ..# ..#");
  EXPECT_EQ(from({0, 0}, {2, 2}), "##. ..# ..#");
  EXPECT_EQ(from({0, 2}, {2, 0}), ".## #.. #..");
  EXPECT_EQ(from({1, 0}, {1, 2}), ".#. #.# ...");
  EXPECT_EQ(from({1, 2}, {1, 0}), ".#. #.# ...");
  EXPECT_EQ(from({1, 1}, {1, 1}), "... .#. ...");
  EXPECT_EQ(from({-3, -3}, {-1, -1}), from({0, 0}, {2, 2}));
}

TYPED_TEST(GridPathOf, TiesTakeFewestCellsThenRasterOrder) {
  const std::vector<TypeParam> ones(12, 1);
  // Walking back from the last cell, the first neighbour in raster order wins.
  EXPECT_EQ(this->path({.height = 3, .width = 4}, ones), "##.. ..#. ...#");
  EXPECT_EQ(this->path({.height = 3, .width = 4, .source = {-1, -1}, .target = {0, 0}}, ones),
            "##.. ..#. ...#");
  EXPECT_EQ(this->path({.height = 3, .width = 4, .neighbourhood = 4}, ones), "#### ...# ...#");
  EXPECT_EQ(this->path({.height = 2, .width = 2, .neighbourhood = 4}, {0, 2, 1, 0}), "#. ##");
  EXPECT_EQ(this->path({.height = 1, .width = 3}, {1, 0, 1}), "###");
  // 1 + 4 + 1 = 1 + 2 + 2 + 1: the diagonal has fewer cells than the way around.
  EXPECT_EQ(this->path({.height = 3, .width = 3}, {1, 2, 2,  //
                                                   2, 4, 2,  //
                                                   2, 2, 1}),
            "#.. .#. ..#");
}

TYPED_TEST(GridPathOf, ZeroCostsGiveNoLoops) {
  for (const int64_t source : {0, 5, 11, 12, 24}) {
    for (const int64_t target : {0, 5, 11, 12, 24}) {
      for (const int neighbourhood : {4, 8}) {
        const GridPath solver{.height = 5,
                              .width = 5,
                              .neighbourhood = neighbourhood,
                              .source = {source / 5, source % 5},
                              .target = {target / 5, target % 5}};
        const std::string drawn = this->path(solver, std::vector<TypeParam>(25, 0));
        const int64_t rows = std::abs(source / 5 - target / 5);
        const int64_t columns = std::abs(source % 5 - target % 5);
        EXPECT_EQ(std::count(drawn.begin(), drawn.end(), '#'),
                  1 + (neighbourhood == 8 ? std::max(rows, columns) : rows + columns))
            << drawn;
      }
    }
  }
  EXPECT_EQ(this->path({.height = 2, .width = 3}, {0, TypeParam(-0.0), 9, 9, 0, TypeParam(-0.0)}),
            "##. ..#");
}

TYPED_TEST(GridPathOf, CostsThatRoundingSwallowsCountAsZero) {
  const TypeParam big = std::numeric_limits<TypeParam>::digits == 24 ? TypeParam(1u << 26)
                                                                     : std::ldexp(TypeParam(1), 60);
  // After the first cell every cost of 1 or 2 vanishes, so the fewest cells decide.
  EXPECT_EQ(this->path({.height = 3, .width = 3}, {big, 1, 1,  //
                                                   1, 2, 1,    //
                                                   1, 1, 1}),
            "#.. .#. ..#");
}

TYPED_TEST(GridPathOf, WallsAndMasks) {
  const TypeParam wall = this->kInf;
  const GridPath solver{.height = 3, .width = 3};
  EXPECT_EQ(this->path(solver, {1, wall, 1, 1, wall, 1, 1, 1, 1}), "#.. #.. .##");
  EXPECT_EQ(this->path(solver, {1, wall, 1, 1, wall, 1, 1, wall, 1}), this->disconnected_);
  EXPECT_EQ(this->path(solver, {wall, 1, 1, 1, 1, 1, 1, 1, 1}), this->disconnected_);
  EXPECT_EQ(this->path(solver, {1, 1, 1, 1, 1, 1, 1, 1, wall}), this->disconnected_);
  EXPECT_EQ(this->path({.height = 2, .width = 2, .neighbourhood = 4}, {1, wall, wall, 1}),
            this->disconnected_);
  EXPECT_EQ(this->path({.height = 2, .width = 2}, {1, wall, wall, 1}), "#. .#");
  EXPECT_EQ(this->path({.height = 1, .width = 1}, {wall}), this->disconnected_);

  const bool without_middle[] = {true, true, true, true, false, true, true, true, true};
  EXPECT_EQ(this->path(solver, {1, 9, 1, 1, 0, 9, 9, 1, 1}, without_middle), "#.. #.. .##");
  const bool without_source[] = {false, true, true, true, true, true, true, true, true};
  EXPECT_EQ(this->path(solver, std::vector<TypeParam>(9, 1), without_source), this->disconnected_);
}

TYPED_TEST(GridPathOf, OverflowIsNoPath) {
  const TypeParam most = std::numeric_limits<TypeParam>::max();
  EXPECT_EQ(this->path({.height = 1, .width = 2}, {most, most}), this->disconnected_);
  EXPECT_EQ(this->path({.height = 1, .width = 2}, {most, 0}), "##");
  EXPECT_EQ(this->path({.height = 2, .width = 3, .target = {0, 2}}, {1, most, 1, most, 1, most}),
            "#.# .#.");
}

TYPED_TEST(GridPathOf, NegativeCostsAreClippedOrRefused) {
  const GridPath clip{.height = 2, .width = 3};
  const GridPath refuse{.height = 2, .width = 3, .negative = Negative::kError};
  // The detour through -5 would pay off if it were not clipped.
  const std::vector<TypeParam> costs = {1, -1, 1, -5, 1, 1};
  EXPECT_EQ(this->path(clip, costs), "##. ..#");
  EXPECT_EQ(this->path(refuse, costs), this->negative_);
  EXPECT_EQ(this->path(clip, {1, -this->kInf, 1, 1, 1, 1}), "##. ..#");
  EXPECT_EQ(this->path(refuse, {1, -this->kInf, 1, 1, 1, 1}), this->negative_);
  EXPECT_EQ(this->path(refuse, {1, TypeParam(-0.0), 1, 1, 1, 1}), "##. ..#");
  const bool without_negative[] = {true, false, true, false, true, true};
  EXPECT_EQ(this->path(refuse, costs, without_negative), "#.. .##");
}

TYPED_TEST(GridPathOf, NaNCountsWhereUnmaskedAndComesFirst) {
  const GridPath solver{.height = 2, .width = 2, .negative = Negative::kError};
  EXPECT_EQ(this->path(solver, {1, 1, this->kNaN, 1}), this->nan_);
  EXPECT_EQ(this->path(solver, {1, -1, this->kNaN, this->kInf}), this->nan_);
  EXPECT_EQ(this->path(solver, {1, -1, 1, this->kInf}), this->negative_);
  const bool without_nan[] = {true, true, false, true};
  EXPECT_EQ(this->path(solver, {1, 1, this->kNaN, 1}, without_nan), "#. .#");
}

TYPED_TEST(GridPathOf, SmallestShapes) {
  EXPECT_EQ(this->path({.height = 1, .width = 1}, {3}), "#");
  EXPECT_EQ(this->path({.height = 1, .width = 5, .source = {0, 3}, .target = {0, 1}},
                       std::vector<TypeParam>(5, 1)),
            ".###.");
  EXPECT_EQ(this->path({.height = 5, .width = 1, .source = {-1, 0}, .target = {1, 0}},
                       std::vector<TypeParam>(5, 1)),
            ". # # # #");
  const auto none = solve_all(GridPath{.height = 3, .width = 3}, 0, std::vector<TypeParam>{});
  EXPECT_TRUE(none.status.empty());
}

TYPED_TEST(GridPathOf, AgreesWithTheRuleTakenLiterally) {
  for (uint64_t seed = 0; seed < 2500; ++seed) {
    std::mt19937_64 random(seed);
    const GridPath solver = oracle::any_settings(random);
    const auto count = static_cast<int64_t>(1 + random() % 40);
    const bool one_kind = random() % 2 == 0;
    const auto kind = static_cast<int>(random() % oracle::kKindsOfCosts);
    std::vector<TypeParam> costs;
    for (int64_t row = 0; row < count; ++row) {
      const int row_kind = one_kind ? kind : static_cast<int>(random() % oracle::kKindsOfCosts);
      const auto one = oracle::troubling_costs<TypeParam>(random, solver.size(), row_kind);
      costs.insert(costs.end(), one.begin(), one.end());
    }
    std::unique_ptr<bool[]> mask;
    if (random() % 4 == 0) {
      mask = std::make_unique<bool[]>(costs.size());
      for (size_t j = 0; j < costs.size(); ++j) mask[j] = random() % 4 != 0;
    }
    expect_oracle(solver, count, costs, mask.get(), "seed " + std::to_string(seed));
    if (this->HasFatalFailure()) return;
  }
}

TYPED_TEST(GridPathOf, Mazes) {
  constexpr int kMazes = 11;
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{21, 21}, {71, 101}}) {
    for (const int neighbourhood : {4, 8}) {
      const GridPath solver{.height = height, .width = width, .neighbourhood = neighbourhood};
      std::mt19937_64 random(static_cast<uint64_t>(height));
      std::vector<TypeParam> costs;
      for (int i = 0; i < kMazes; ++i) {
        const auto one = oracle::maze<TypeParam>(random, height, width);
        costs.insert(costs.end(), one.begin(), one.end());
      }
      expect_oracle(solver, kMazes, costs, nullptr, "maze");
    }
  }
}

TYPED_TEST(GridPathOf, LargeGrids) {
  const GridPath solver{.height = 70, .width = 93};
  std::mt19937_64 random(93);
  for (int kind = 0; kind < oracle::kKindsOfCosts; ++kind) {
    const auto costs = oracle::troubling_costs<TypeParam>(random, 3 * solver.size(), kind);
    expect_oracle(solver, 3, costs, nullptr, "kind " + std::to_string(kind));
  }
}

TEST_F(GridPathTest, BadSettingsAreNamed) {
  const auto message = [](const GridPath& solver) {
    try {
      solver.validate();
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message({.height = 3, .width = 4, .source = {-3, -4}, .target = {2, 3}}), "accepted");
  EXPECT_EQ(message({.height = 0, .width = 4}),
            "[aimle::grid_path] expected height >= 1 and width >= 1 but got height=0, width=4");
  EXPECT_EQ(message({.height = 3, .width = -1}),
            "[aimle::grid_path] expected height >= 1 and width >= 1 but got height=3, width=-1");
  EXPECT_EQ(message({.height = int64_t{1} << 40, .width = int64_t{1} << 40}),
            "[aimle::grid_path] expected at most 268435456 cells but got height=1099511627776, "
            "width=1099511627776");
  EXPECT_EQ(message({.height = 3, .width = 4, .neighbourhood = 6}),
            "[aimle::grid_path] expected neighbourhood 4 or 8 but got 6");
  EXPECT_EQ(message({.height = 3, .width = 4, .source = {3, 0}}),
            "[aimle::grid_path] expected source inside the 3 x 4 grid but got (3, 0)");
  EXPECT_EQ(message({.height = 3, .width = 4, .target = {0, -5}}),
            "[aimle::grid_path] expected target inside the 3 x 4 grid but got (0, -5)");
}

}  // namespace
}  // namespace aimle
