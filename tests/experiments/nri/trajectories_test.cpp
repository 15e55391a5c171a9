#include "experiments/nri/trajectories.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "experiments/data/npy.h"
#include "experiments/nri/layout.h"
#include "tests/experiments/data/files.h"

namespace aimle::experiments::nri {
namespace {

bool is_tree(const uint8_t* adjacency, int64_t n) {
  std::vector<int64_t> root(n);
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](int64_t v) {
    while (root[v] != v) v = root[v];
    return v;
  };
  int64_t edges = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      if (adjacency[i * n + j] != adjacency[j * n + i]) return false;
      if (i >= j || !adjacency[i * n + j]) continue;
      ++edges;
      root[find(i)] = find(j);
    }
  }
  for (int64_t v = 0; v < n; ++v) {
    if (adjacency[v * n + v] || find(v) != find(0)) return false;
  }
  return edges == n - 1;
}

TEST(NriLayoutStep, TwoVerticesMoveAlongTheirLine) {
  // k^2 = 1/2, distance 1: repulsion 1/2, attraction sqrt 2, so both move inwards by t = 0.1.
  for (const bool linked : {true, false}) {
    std::vector<uint8_t> adjacency{0, linked, linked, 0};
    std::vector<double> x{-0.5, 0.5};
    std::vector<double> y{0, 0};
    layout_step(adjacency, x, y);
    EXPECT_DOUBLE_EQ(x[0], -1) << "rescaled";
    EXPECT_DOUBLE_EQ(x[1], 1);
  }
  EXPECT_THROW(layout_step(std::vector<uint8_t>(3), std::span<double>(), std::span<double>()),
               std::invalid_argument);
}

TEST(NriLayoutStep, ShortForcesFollowTheRuleOfTheVersion) {
  // Three vertices on a line: the middle one feels no force. Nearly so: a small one.
  const std::vector<uint8_t> none(9, 0);
  const auto middle = [&](ShortForce rule) {
    std::vector<double> x{-1, 1e-3, 1};
    std::vector<double> y{0, 0, 0};
    layout_step(none, x, y, rule);
    return x[1];
  };
  EXPECT_GT(std::fabs(middle(ShortForce::kHundredth) - 1e-3),
            std::fabs(middle(ShortForce::kTenth) - 1e-3) * 2);
}

TEST(NriGenerate, FramesAreCentredAndScaledAndLinksAreTrees) {
  const Trajectories raw = generate({.count = 300, .frames = 4, .seed = 5});
  ASSERT_EQ(raw.positions.size(), 300u * 4 * 2 * 10);
  for (int64_t b = 0; b < raw.count; ++b) {
    EXPECT_TRUE(is_tree(raw.adjacency.data() + b * 100, 10)) << "example " << b;
    for (int64_t t = 0; t < raw.frames; ++t) {
      const double* frame = raw.positions.data() + (b * raw.frames + t) * 20;
      double largest = 0;
      for (int i = 0; i < 20; ++i) largest = std::max(largest, std::fabs(frame[i]));
      EXPECT_NEAR(largest, 1, 1e-12);
      EXPECT_NEAR(std::accumulate(frame, frame + 10, 0.0), 0, 1e-12);
      EXPECT_NEAR(std::accumulate(frame + 10, frame + 20, 0.0), 0, 1e-12);
    }
  }
}

TEST(NriGenerate, FramesFollowByTheLayoutOfTheTree) {
  const Trajectories raw = generate({.count = 50, .frames = 6, .seed = 6});
  for (int64_t b = 0; b < raw.count; ++b) {
    for (int64_t t = 1; t < raw.frames; ++t) {
      const double* before = raw.positions.data() + (b * raw.frames + t - 1) * 20;
      std::vector<double> x(before, before + 10);
      std::vector<double> y(before + 10, before + 20);
      layout_step({raw.adjacency.data() + b * 100, 100}, x, y);
      EXPECT_TRUE(std::equal(x.begin(), x.end(), before + 20));
      EXPECT_TRUE(std::equal(y.begin(), y.end(), before + 30));
    }
  }
}

TEST(NriGenerate, AnExampleDependsOnSeedSplitAndNumberAlone) {
  const Trajectories some = generate({.count = 300, .frames = 3, .seed = 7});
  const Trajectories more = generate({.count = 700, .frames = 3, .seed = 7}, thread_pool(2));
  EXPECT_TRUE(std::equal(some.positions.begin(), some.positions.end(), more.positions.begin()));
  EXPECT_TRUE(std::equal(some.adjacency.begin(), some.adjacency.end(), more.adjacency.begin()));
  EXPECT_NE(generate({.count = 300, .frames = 3, .seed = 8}).adjacency, some.adjacency);
  EXPECT_NE(generate({.count = 300, .frames = 3, .seed = 7, .split = 1}).adjacency, some.adjacency);
  EXPECT_NE(generate({.count = 300, .frames = 3, .seed = 7, .split = 1}).positions, some.positions);
  const Trajectories longer = generate({.count = 300, .frames = 5, .seed = 7});
  for (int64_t b = 0; b < 300; ++b) {
    EXPECT_TRUE(std::equal(some.positions.begin() + b * 60, some.positions.begin() + (b + 1) * 60,
                           longer.positions.begin() + b * 100));
  }
  EXPECT_THROW(generate({.count = 1, .vertices = 1}), std::invalid_argument);
}

TEST(NriGenerate, ATreeOfAnotherGraphIsRightAtChance) {
  const Trajectories raw = generate({.count = 20'000, .frames = 1, .seed = 1});
  const Examples examples = to_examples(raw, range_of(raw));
  std::vector<uint8_t> other = examples.edges;
  std::rotate(other.begin(), other.begin() + 90, other.end());
  // An edge of one tree is in another with probability 9/45; 20,000 graphs of variance < 0.2 / 9.
  const double tolerance = 5 * std::sqrt(0.2 / 9 / 20'000);
  double shared = 0, edges = 0;
  for (size_t i = 0; i < other.size(); ++i) {
    shared += examples.edges[i] && other[i];
    edges += other[i];
  }
  EXPECT_EQ(edges, 20'000 * 18);  // both directions of nine edges
  EXPECT_NEAR(shared / edges, 0.2, tolerance);
}

TEST(NriToExamples, MapsReordersAndListsReceiverMajor) {
  Trajectories raw{.count = 1, .frames = 2, .vertices = 3};
  raw.positions = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};  // [1, 2 frames, 2, 3 vertices]
  raw.adjacency = {0, 1, 1, 0, 0, 1, 0, 0, 0};             // not symmetric: shows the transpose
  const Examples examples = to_examples(raw, {.low = 0, .high = 2});
  // vertex 0: frame 0 (0, 3), frame 1 (6, 9); minus one, as 2 (p - 0) / 2 - 1
  EXPECT_EQ(examples.positions, (std::vector<float>{-1, 2, 5, 8, 0, 3, 6, 9, 1, 4, 7, 10}));
  // (r0: s1, s2), (r1: s0, s2), (r2: s0, s1) = adjacency[s, r]
  EXPECT_EQ(examples.edges, (std::vector<uint8_t>{0, 0, 1, 0, 1, 1}));
}

TEST(NriLoad, ReadsWhatThePublicGeneratorWrites) {
  const TemporaryFolder folder;
  const Trajectories raw = generate({.count = 20, .frames = 10});
  save(raw, folder.path(), "train");
  const fs::path data = folder / "data_train_novar_1skip_10t_1r_graph10.npy";
  const fs::path edges = folder / "edges_train_novar_1skip_10t_1r_graph10.npy";
  ASSERT_TRUE(fs::exists(data) && fs::exists(edges));
  const Trajectories back = load(folder.path(), "train", 10);
  EXPECT_EQ(back.positions, raw.positions);
  EXPECT_EQ(back.adjacency, raw.adjacency);

  EXPECT_REFUSED(load(folder.path(), "valid", 10), "data_valid_novar");
  fs::copy(data, folder / "data_train_novar_1skip_20t_1r_graph10.npy");
  fs::copy(edges, folder / "edges_train_novar_1skip_20t_1r_graph10.npy");
  EXPECT_REFUSED(load(folder.path(), "train", 20),
                 "expected shape [N, 20, 2, 10] but got [20, 10, 2, 10]");
  data::write_npy<float>(edges, std::vector<int64_t>{20, 90}, std::vector<float>(1800));
  EXPECT_REFUSED(load(folder.path(), "train", 10), "expected shape [20, 10, 10] but got [20, 90]");
  data::write_npy<float>(edges, std::vector<int64_t>{20, 10, 10}, std::vector<float>(2000, 2));
  EXPECT_REFUSED(load(folder.path(), "train", 10), "expected 0 or 1 but entry [0, 0, 0] is 2");
  const auto with = [&](auto change) {
    Trajectories wrong = raw;
    change(wrong);
    save(wrong, folder.path(), "train");
  };
  with([](Trajectories& t) { t.adjacency[3 * 100 + 12] ^= 1; });
  EXPECT_REFUSED(load(folder.path(), "train", 10),
                 "graph10.npy: expected symmetric edges but in example 3 entry [1, 2] is");
  with([](Trajectories& t) { t.adjacency[4 * 100 + 55] = 1; });
  EXPECT_REFUSED(load(folder.path(), "train", 10), "but vertex 5 of example 4 has one");
  with([](Trajectories& t) { std::fill_n(t.adjacency.begin() + 500, 100, 0); });
  EXPECT_REFUSED(load(folder.path(), "train", 10), "expected edges but example 5 has none");
  with([](Trajectories& t) {
    for (int i = 0; i < 100; ++i) t.adjacency[600 + i] = i % 11 != 0;
  });
  EXPECT_REFUSED(load(folder.path(), "train", 10), "but in example 6 all are");
  with([](Trajectories& t) { std::fill_n(t.positions.begin() + 7 * 200, 200, 0); });
  EXPECT_REFUSED(load(folder.path(), "train", 10),
                 "data_train_novar_1skip_10t_1r_graph10.npy: expected positions that differ but "
                 "all those of example 7 are 0");
  with([](Trajectories& t) { t = {.count = 0, .frames = 10, .vertices = 10}; });
  EXPECT_REFUSED(load(folder.path(), "train", 10), "expected at least one example");
  save(raw, folder.path(), "train");
  const std::string good = read_bytes(edges);
  EXPECT_GT(count_refused(edges, good, 1000, [&] { load(folder.path(), "train", 10); }), 500);
  std::vector<double> positions = raw.positions;
  positions[17] = NAN;
  data::write_npy<double>(data, std::vector<int64_t>{20, 10, 2, 10}, positions);
  EXPECT_REFUSED(load(folder.path(), "train", 10), "expected finite positions but entry 17 is nan");
}

}  // namespace
}  // namespace aimle::experiments::nri
