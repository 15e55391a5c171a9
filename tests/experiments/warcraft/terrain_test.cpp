#include "experiments/warcraft/terrain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

namespace aimle::experiments::warcraft {
namespace {

/// Mean colour and mean spread within a tile, of every terrain.
struct Look {
  std::array<double, 3> colour{};
  double spread = 0;
  int64_t tiles = 0;
};
std::map<float, Look> looks(const Maps& maps) {
  std::map<float, Look> out;
  const int64_t side = kTile * maps.cells;
  for (int64_t cell = 0; cell < maps.count * maps.cells * maps.cells; ++cell) {
    const int64_t b = cell / (maps.cells * maps.cells);
    const int64_t row = cell / maps.cells % maps.cells * kTile;
    const int64_t column = cell % maps.cells * kTile;
    Look& look = out[maps.costs[cell]];
    ++look.tiles;
    for (int64_t c = 0; c < 3; ++c) {
      double sum = 0;
      double squares = 0;
      for (int64_t y = row; y < row + kTile; ++y) {
        for (int64_t x = column; x < column + kTile; ++x) {
          const double value = maps.images[((b * side + y) * side + x) * 3 + c];
          sum += value;
          squares += value * value;
        }
      }
      look.colour[c] += sum / 64;
      look.spread += std::sqrt(std::max(0.0, squares / 64 - sum / 64 * (sum / 64)));
    }
  }
  for (auto& [cost, look] : out) {
    for (double& level : look.colour) level /= static_cast<double>(look.tiles);
    look.spread /= static_cast<double>(3 * look.tiles);
  }
  return out;
}

TEST(WarcraftTerrain, HasTheCostsAndColoursOfTheRealMaps) {
  const Maps maps = generate({.count = 200, .cells = 12, .seed = 1});
  auto seen = looks(maps);
  ASSERT_EQ(seen.size(), 5u);
  // Mean colours of the tiles of two real maps.
  const std::map<float, std::array<double, 3>> real{{0.8f, {50, 81, 10}},
                                                    {1.2f, {103, 65, 8}},
                                                    {5.3f, {17, 80, 8}},
                                                    {7.7f, {13, 53, 95}},
                                                    {9.2f, {74, 74, 74}}};
  for (const auto& [cost, colour] : real) {
    ASSERT_TRUE(seen.contains(cost)) << cost;
    EXPECT_GT(seen[cost].tiles, 200 * 144 / 25) << cost;
    for (int c = 0; c < 3; ++c) EXPECT_NEAR(seen[cost].colour[c], colour[c], 10) << cost;
    EXPECT_GT(seen[cost].spread, 4) << "tiles have texture: " << cost;
  }
}

TEST(WarcraftTerrain, IsSmoothInSpace) {
  const Maps maps = generate({.count = 100, .cells = 12, .seed = 1});
  int64_t alike = 0;
  int64_t pairs = 0;
  for (int64_t cell = 0; cell < 100 * 144; ++cell) {
    if (cell % 12 == 11) continue;
    alike += maps.costs[cell] == maps.costs[cell + 1];
    ++pairs;
  }
  EXPECT_GT(static_cast<double>(alike) / static_cast<double>(pairs), 0.55);  // mixed: about 0.23
}

TEST(WarcraftTerrain, PathsAreOptimalAndWind) {
  const Maps maps = generate({.count = 100, .cells = 12, .seed = 4});
  EXPECT_EQ(solve_paths(maps.costs, 12), maps.paths);
  int64_t diagonal = 0;
  for (int64_t b = 0; b < maps.count; ++b) {
    const std::span<const uint8_t> path(maps.paths.data() + b * 144, 144);
    EXPECT_TRUE(is_path(path, 12));
    diagonal += std::ranges::count(path, 1) == 12;
  }
  EXPECT_LT(diagonal, 50) << "most paths leave the diagonal";
}

TEST(WarcraftTerrain, AMapDependsOnSeedSplitAndNumberAlone) {
  const Maps some = generate({.count = 20, .cells = 6, .seed = 7});
  const Maps more = generate({.count = 45, .cells = 6, .seed = 7}, thread_pool(2));
  EXPECT_TRUE(std::equal(some.images.begin(), some.images.end(), more.images.begin()));
  EXPECT_TRUE(std::equal(some.paths.begin(), some.paths.end(), more.paths.begin()));
  EXPECT_NE(generate({.count = 20, .cells = 6, .seed = 8}).costs, some.costs);
  EXPECT_NE(generate({.count = 20, .cells = 6, .seed = 7, .split = 2}).costs, some.costs);
  const Maps first = generate({.count = 2, .cells = 6, .seed = 7});
  EXPECT_FALSE(std::equal(first.images.begin(), first.images.begin() + first.image_size(),
                          first.images.begin() + first.image_size()));
  EXPECT_THROW(generate({.count = 1, .cells = 1}), std::invalid_argument);
}

}  // namespace
}  // namespace aimle::experiments::warcraft
