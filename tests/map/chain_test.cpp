#include "aimle/map/chain.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <vector>

#include "aimle/map/solver.h"
#include "tests/map/chain_instances.h"
#include "tests/message_of.h"

namespace aimle {
namespace {

using conformance::Batch;
using conformance::draw_batch;
using conformance::expect_oracle;
using conformance::expect_same;
using conformance::Instances;
using conformance::instruction_sets;
using conformance::Rng;
using conformance::solve_batch;
using conformance::uniform;
using conformance::WithIsa;

TEST(Chain, NamesTheSettingsThatItRefuses) {
  EXPECT_EQ(message_of<std::invalid_argument>([] { Chain{.length = 0, .labels = 2}.validate(); }),
            "[aimle::chain] expected 1 <= length <= 1073741824 but got length=0");
  EXPECT_EQ(
      message_of<std::invalid_argument>([] { Chain{.length = 2, .labels = 70'000}.validate(); }),
      "[aimle::chain] expected 1 <= labels <= 65536 but got labels=70000");
}

TEST(Chain, TakesWhatIsLeftOpenFromTheShape) {
  const std::vector<int64_t> shape = {4, 3, 3};
  Chain open;
  open.fit(shape);
  EXPECT_EQ(open.length, 5);
  EXPECT_EQ(open.labels, 3);
  Chain given{.length = 5, .labels = 3};
  given.fit(shape);
  EXPECT_EQ(given.size(), 36);
  const std::vector<int64_t> empty = {0, 3, 3};
  Chain one;
  one.fit(empty);
  EXPECT_EQ(one.length, 1);
  EXPECT_EQ(one.size(), 0);
}

TEST(Chain, NamesTheShapeThatItRefuses) {
  const std::vector<int64_t> square = {4, 3, 3}, skew = {4, 3, 2}, without = {4, 0, 0};
  EXPECT_EQ(message_of<std::invalid_argument>([&] { Chain{.length = 4, .labels = 3}.fit(square); }),
            "[aimle::chain] expected scores [..., length - 1, labels, labels] for length=4, "
            "labels=3 but the last dimensions are 4, 3, 3: aimle.chain_scores makes them from "
            "scores of labels and of transitions");
  for (const auto& shape : {skew, without}) {
    EXPECT_NE(message_of<std::invalid_argument>([&] {
                Chain{}.fit(shape);
              }).find("the last dimensions are 4"),
              std::string::npos);
  }
}

// Positions 0 and 1 have labels a < b; both sequences to the end have the sum 1.
TEST(Chain, TheLowerLabelWinsFromTheEnd) {
  const Chain solver{.length = 3, .labels = 2};
  Batch<float> batch{.count = 1, .size = solver.size()};
  batch.scores = {1, 0, 0, 1, 0, 0, 0, 0};
  const std::vector<float> expected = {1, 0, 0, 0, 1, 0, 0, 0};
  EXPECT_EQ(solve_batch(solver, batch).z, expected);
  batch.scores = {1, 0, 0, 1, 0, 1, 1, 0};  // 0 0 1 and 1 1 0 have the sum 2
  EXPECT_EQ(solve_batch(solver, batch).z, (std::vector<float>{0, 0, 0, 1, 0, 0, 1, 0}));
}

/// A row that a mask ends after some positions is the shorter chain with zeros behind.
template <class T>
void check_ragged_rows() {
  for (const Isa isa : instruction_sets()) {
    const WithIsa with(isa);
    for (uint64_t seed = 0; seed < 200; ++seed) {
      Rng rng(seed);
      const Chain solver{.length = uniform(rng, 1, 9), .labels = uniform(rng, 1, 20)};
      auto batch = draw_batch<T>(solver, {.count = 6}, rng);
      batch.mask.resize(batch.scores.size());
      std::vector<int64_t> lengths;
      for (int64_t i = 0; i < batch.count; ++i) {
        lengths.push_back(uniform(rng, 1, solver.length));
        const int64_t end = (lengths.back() - 1) * solver.edges_per_step();
        for (int64_t e = 0; e < batch.size; ++e) {
          const auto at = static_cast<size_t>(i * batch.size + e);
          batch.mask[at] = e < end;
          if (e >= end) batch.scores[at] = std::numeric_limits<T>::quiet_NaN();
        }
      }
      const auto solved = solve_batch(solver, batch);
      expect_oracle(solver, batch, solved);
      for (int64_t i = 0; i < batch.count; ++i) {
        const Chain shorter{.length = lengths[static_cast<size_t>(i)], .labels = solver.labels};
        Batch<T> one{.count = 1, .size = shorter.size()};
        const auto begin = batch.scores.begin() + i * batch.size;
        one.scores.assign(begin, begin + one.size);
        const auto alone = solve_batch(shorter, one);
        ASSERT_EQ(alone.status[0], Status::kOk);
        ASSERT_EQ(solved.status[static_cast<size_t>(i)], Status::kOk);
        for (int64_t e = 0; e < batch.size; ++e) {
          const T expected = e < one.size ? alone.z[static_cast<size_t>(e)] : T(0);
          ASSERT_EQ(solved.z[static_cast<size_t>(i * batch.size + e)], expected) << "seed " << seed;
        }
      }
    }
  }
}

TEST(Chain, AMaskEndsARowEarly) {
  check_ragged_rows<float>();
  check_ragged_rows<double>();
}

TEST(Chain, AStepWithoutEdgesInTheMiddleLeavesNoSequence) {
  const Chain solver{.length = 4, .labels = 2};
  Batch<double> batch{.count = 1, .size = solver.size()};
  batch.scores.assign(12, 1.0);
  batch.mask.resize(12, true);
  for (size_t e = 4; e < 8; ++e) batch.mask[e] = false;
  EXPECT_EQ(solve_batch(solver, batch).status[0], Status::kDisconnected);
}

TEST(Chain, ScoresOfMinusInfinityEndNoRow) {
  const Chain solver{.length = 3, .labels = 2};
  Batch<float> batch{.count = 1, .size = solver.size()};
  batch.scores.assign(8, 0.0f);
  for (size_t e = 4; e < 8; ++e) batch.scores[e] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(solve_batch(solver, batch).status[0], Status::kDisconnected);
}

TEST(Chain, ListsItsStructuresInTheOrderOfTheirLabels) {
  const Solver solver = Chain{.length = 3, .labels = 2};
  EXPECT_EQ(solver.structure_count(), 8);
  const auto all = solver.structures();
  ASSERT_EQ(all.size(), 64u);
  const std::vector<uint8_t> second(all.begin() + 8, all.begin() + 16);  // 0 0 1
  EXPECT_EQ(second, (std::vector<uint8_t>{1, 0, 0, 0, 0, 1, 0, 0}));
  const Solver one = Chain{.length = 1, .labels = 4}, many = Chain{.length = 30, .labels = 4};
  EXPECT_EQ(one.structure_count(), 1);
  EXPECT_TRUE(one.structures().empty());
  EXPECT_EQ(message_of<std::invalid_argument>([&] { many.structures(); }),
            "[aimle::enumerate] expected at most 1000000 structures but there are more for "
            "length=30, labels=4");
}

}  // namespace
}  // namespace aimle
