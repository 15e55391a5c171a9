#include "experiments/warcraft/maps.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "experiments/data/npy.h"
#include "experiments/warcraft/terrain.h"
#include "tests/experiments/data/files.h"

namespace aimle::experiments::warcraft {
namespace {

double path_cost(const Maps& maps, int64_t map, const std::vector<uint8_t>& paths) {
  const int64_t area = maps.cells * maps.cells;
  double cost = 0;
  for (int64_t i = 0; i < area; ++i) {
    cost += paths[map * area + i] ? maps.costs[map * area + i] : 0.0;
  }
  return cost;
}

TEST(WarcraftLoad, TwoRealMaps) {
  const fs::path file = data_folder() / "warcraft_samples" / "samples.npz";
  if (!fs::exists(file)) GTEST_SKIP() << file << " is not there";
  const Maps maps = load_npz(file);
  ASSERT_EQ(maps.count, 2);
  ASSERT_EQ(maps.cells, 12);
  const std::vector<uint8_t> solved = solve_paths(maps.costs, maps.cells);
  const double expected[] = {27.0, 28.6};
  for (int64_t b = 0; b < 2; ++b) {
    EXPECT_NEAR(path_cost(maps, b, solved), expected[b], 1e-5);
    EXPECT_NEAR(path_cost(maps, b, maps.paths), expected[b], 1e-5);
  }
  const TemporaryFolder folder;
  fs::copy_file(file, folder / "test.npz");
  EXPECT_EQ(load(folder.path(), "test").images, maps.images) << "an archive for a split";
  const std::vector<int64_t> both{0, 1};
  EXPECT_EQ(score_paths(maps, both, solved).optimal, 1);
}

TEST(WarcraftLoad, ReadsTheSplitsOfAFolder) {
  const TemporaryFolder folder;
  const Maps maps = generate({.count = 5, .cells = 3, .seed = 2});
  save(maps, folder.path(), "test");
  const Maps back = load(folder.path(), "test");
  EXPECT_EQ(back.images, maps.images);
  EXPECT_EQ(back.costs, maps.costs);
  EXPECT_EQ(back.paths, maps.paths);
  EXPECT_REFUSED(load(folder.path(), "train"), "train_maps.npy: does not exist");
}

TEST(WarcraftLoad, AllowsForCostsThatWereRounded) {
  // Two ways of cost 100 + 100.05 + 100 and 100 + 100 + 100; as float16 the label's is the dearer.
  Maps maps{.count = 1, .cells = 3};
  maps.images.resize(static_cast<size_t>(maps.image_size()));
  maps.costs = {100, 900, 900, 900, 100.05f, 900, 900, 900, 100};
  maps.paths = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  const TemporaryFolder folder;
  const auto read = [&] {
    save(maps, folder.path(), "test");
    return load(folder.path(), "test");
  };
  EXPECT_EQ(read().paths, maps.paths);
  maps.costs[1] = maps.costs[5] = 50;  // two cells, 100 in all: 0.05 of 300.05 less
  maps.paths = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  EXPECT_EQ(read().paths, maps.paths);
  maps.costs[1] = maps.costs[5] = 49;
  EXPECT_REFUSED(read(), "its cells cost 300.05, and there is a path of cost 298");
}

TEST(WarcraftLoad, JoinsPartsAndTakesTheTypesThatOccur) {
  const TemporaryFolder folder;
  const Maps maps = generate({.count = 5, .cells = 3, .seed = 2});
  const auto write_parts = [&]<class T>(const std::string& name, const std::vector<T>& values,
                                        std::vector<int64_t> shape) {
    const auto size = static_cast<int64_t>(values.size()) / 5;
    shape.insert(shape.begin(), 3);
    data::write_npy<T>(folder / (name + "_part0.npy"), shape,
                       std::span(values).subspan(0, 3 * size));
    shape[0] = 2;
    data::write_npy<T>(folder / (name + "_part1.npy"), shape, std::span(values).subspan(3 * size));
  };
  write_parts("train_maps", std::vector<float>(maps.images.begin(), maps.images.end()),
              {24, 24, 3});
  write_parts("train_shortest_paths", std::vector<double>(maps.paths.begin(), maps.paths.end()),
              {3, 3});
  write_parts("train_vertex_weights", std::vector<double>(maps.costs.begin(), maps.costs.end()),
              {3, 3});
  const Maps back = load(folder.path(), "train");
  EXPECT_EQ(back.images, maps.images);
  EXPECT_EQ(back.costs, maps.costs);
  EXPECT_EQ(back.paths, maps.paths);
}

TEST(WarcraftLoad, RefusesWhatDoesNotBelongTogether) {
  const TemporaryFolder folder;
  const Maps maps = generate({.count = 4, .cells = 3, .seed = 2});
  const auto with = [&](auto change) {
    Maps wrong = maps;
    change(wrong);
    save(wrong, folder.path(), "test");
  };
  const auto read = [&] { return load(folder.path(), "test"); };
  with([](Maps& m) { m.paths[0] = 0; });
  EXPECT_REFUSED(read(), "test_shortest_paths: expected a path from corner to corner in map 0");
  with([](Maps& m) { std::fill_n(m.paths.begin() + 18, 9, 1); });
  EXPECT_REFUSED(read(), "test_shortest_paths: expected the cheapest path in map 2 but its cells");
  with([](Maps& m) { std::fill_n(m.costs.begin() + 27, 9, 1.0f), m.paths[27 + 2] ^= 1; });
  EXPECT_REFUSED(read(), "in map 3 but its cells cost ");
  with([](Maps& m) { m.paths[9] = 7; });
  EXPECT_REFUSED(read(), "expected 0 or 1 in map 1");
  with([](Maps& m) { m.costs[5] = -1; });
  EXPECT_REFUSED(read(), "test_vertex_weights: expected finite costs >= 0 but entry 5 is -1");
  with([](Maps& m) { m.costs[5] = NAN; });
  EXPECT_REFUSED(read(), "entry 5 is nan");
  save(maps, folder.path(), "test");
  data::write_npy<float>(folder / "test_vertex_weights.npy", std::vector<int64_t>{4, 9},
                         maps.costs);
  EXPECT_REFUSED(read(), "expected shape [N, K, K] but got [4, 9]");
  save(generate({.count = 4, .cells = 4}), folder.path(), "other");
  save(maps, folder.path(), "test");
  fs::copy_file(folder / "other_maps.npy", folder / "test_maps.npy",
                fs::copy_options::overwrite_existing);
  EXPECT_REFUSED(read(), "expected shape [4, 24, 24, 3] but got [4, 32, 32, 3]");
  save(maps, folder.path(), "test");
  for (const char* name : {"test_maps.npy", "test_shortest_paths.npy", "test_vertex_weights.npy"}) {
    const fs::path file = folder / name;
    const std::string good = read_bytes(file);
    int refused = 0;
    for (int seed = 0; seed < 400; ++seed) {
      std::mt19937 random(seed);
      write_bytes(file, damaged(good, random));
      refused += !refusal(read).empty();
    }
    EXPECT_GT(refused, 100) << name;
    write_bytes(file, good);
  }
}

TEST(WarcraftNormalisation, IsThatOfEveryPixel) {
  const Maps maps = generate({.count = 3, .cells = 4, .seed = 3});
  const Normalisation scale = normalisation(maps);
  const size_t pixels = 3 * 32 * 32;
  for (size_t c = 0; c < 3; ++c) {
    double sum = 0;
    double squares = 0;
    for (size_t p = 0; p < pixels; ++p) {
      const double value = (maps.images[p * 3 + c] - scale.mean[c]) / scale.stddev[c];
      sum += value;
      squares += value * value;
    }
    EXPECT_NEAR(sum / pixels, 0, 1e-9);
    EXPECT_NEAR(squares / pixels, 1, 1e-9);
  }
}

TEST(WarcraftScorePaths, TellsPathsFromMasksAndCheapFromDear) {
  Maps maps{.count = 1, .cells = 3};
  maps.costs = {1, 1, 9, 9, 2, 9, 9, 1, 1};
  maps.paths = {1, 0, 0, 0, 1, 0, 0, 0, 1};  // cost 4
  const std::vector<int64_t> index{0};
  const auto score = [&](std::vector<uint8_t> path) { return score_paths(maps, index, path); };
  PathScores s = score({1, 0, 0, 0, 1, 0, 0, 0, 1});
  EXPECT_EQ(s.perfect_match + s.optimal + s.valid + s.cost_ratio, 4);
  s = score({1, 1, 0, 0, 1, 0, 0, 0, 1});  // one cell too many: a path, not optimal
  EXPECT_EQ(s.perfect_match, 0);
  EXPECT_EQ(s.optimal, 0);
  EXPECT_EQ(s.valid, 1);
  EXPECT_EQ(s.cost_ratio, 1.25);
  s = score({1, 0, 0, 0, 0, 0, 0, 0, 1});  // cheap, but no path
  EXPECT_EQ(s.valid + s.optimal + s.cost_ratio, 0);
  s = score({0, 1, 0, 0, 1, 0, 0, 0, 1});  // does not start at the corner
  EXPECT_EQ(s.valid, 0);
  maps.costs = {1, 1, 9, 1, 2, 9, 9, 1, 1};
  maps.paths = {1, 1, 0, 0, 1, 0, 0, 0, 1};
  s = score({1, 0, 0, 1, 1, 0, 0, 0, 1});  // another path of the same cost
  EXPECT_EQ(s.perfect_match, 0);
  EXPECT_EQ(s.optimal, 1);
  EXPECT_THROW(score({1, 0}), std::invalid_argument);
}

}  // namespace
}  // namespace aimle::experiments::warcraft
