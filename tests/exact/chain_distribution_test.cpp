#include "aimle/exact/chain_distribution.h"

#include "aimle/map/solver.h"
#include "tests/exact/listed.h"

namespace aimle {
namespace {

using listed::Structure;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<Structure> sequences(const Chain& solver) {
  const auto size = static_cast<size_t>(solver.size());
  if (size == 0) return {Structure{}};
  const std::vector<uint8_t> all = solver.structures();
  std::vector<Structure> result;
  for (size_t at = 0; at < all.size(); at += size) {
    result.emplace_back(all.begin() + static_cast<int64_t>(at),
                        all.begin() + static_cast<int64_t>(at + size));
  }
  return result;
}

/// The first `entries` of a structure, and zeros.
std::vector<Structure> lengthened(std::vector<Structure> all, size_t entries) {
  for (Structure& z : all) z.resize(entries);
  return all;
}

template <class T>
void check_against_the_list(bool masked) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    listed::Rng rng(seed);
    const Chain solver{.length = listed::uniform(rng, 1, 5), .labels = listed::uniform(rng, 1, 4)};
    constexpr double kSpreads[] = {2, 30, 150, 1000};
    const auto x = listed::reals<T>(rng, solver.size(), kSpreads[seed % 4]);
    auto v = listed::reals<T>(rng, solver.size(), 1);
    Chain chain = solver;
    Structure mask;
    auto all = sequences(solver);
    if (masked) {
      chain.length = listed::uniform(rng, 1, solver.length);
      mask.assign(x.size(), 0);
      for (int64_t j = 0; j < chain.size(); ++j) mask[j] = listed::uniform(rng, 0, 4) > 0;
      for (int64_t t = 0; t < chain.steps(); ++t) mask[t * chain.edges_per_step()] = 1;
      for (size_t j = 0; j < mask.size(); ++j) v[j] = mask[j] ? v[j] : static_cast<T>(kNaN);
      all = listed::unmasked(lengthened(sequences(chain), x.size()), mask);
    }
    SCOPED_TRACE(testing::Message() << "seed " << seed << ":" << listed::text(x));
    auto expected = listed::evaluate(all, x, v);
    auto row = listed::evaluate_row(solver, x, v, mask);
    for (size_t j = 0; j < x.size(); ++j) {  // T has fewer digits where it is about to underflow
      const double least = std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon();
      if (expected.marginals[j] > least) continue;
      ASSERT_LE(row.marginals[j], 2 * least);
      expected.marginals[j] = 0;
      row.marginals[j] = 0;
    }
    listed::expect_near(row, expected, 20, 2e-12);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(ChainDistribution, IsWhatTheListOfSequencesSays) {
  check_against_the_list<float>(false);
  check_against_the_list<double>(false);
}

TEST(ChainDistribution, IsWhatTheListSaysUnderAMaskThatAlsoShortens) {
  check_against_the_list<float>(true);
  check_against_the_list<double>(true);
}

// Label 1 falls behind by 40 at each of 100 steps, and makes up for it at the last: by logarithms
// alone. Label 0 never changes to 1 before.
TEST(ChainDistribution, KeepsWhatSeemsImpossibleAtFirst) {
  const Chain solver{.length = 102, .labels = 2};
  std::vector<double> x, v(static_cast<size_t>(solver.size()), 0.0);
  for (int t = 0; t < 100; ++t) x.insert(x.end(), {0, -kInf, -kInf, -40});
  x.insert(x.end(), {0, -kInf, -kInf, 4000});
  v[400] = 1;
  const auto row = listed::evaluate_row(solver, x, v);
  ASSERT_EQ(row.status, Status::kOk);
  EXPECT_NEAR(row.log_partition, std::log(2.0), 1e-11);
  for (size_t t = 0; t < 101; ++t) {
    ASSERT_NEAR(row.marginals[4 * t], 0.5, 1e-11);
    ASSERT_NEAR(row.marginals[4 * t + 3], 0.5, 1e-11);
    ASSERT_NEAR(row.covariance[4 * t], 0.25, 1e-11);
    ASSERT_NEAR(row.covariance[4 * t + 3], -0.25, 1e-11);
  }
}

TEST(ChainDistribution, OfALongChainAddsUpToOneAtEveryStep) {
  const Chain solver{.length = 500, .labels = 7};
  listed::Rng rng(3);
  const auto x = listed::reals<double>(rng, solver.size(), 30);
  const auto v = std::vector<double>(x.size(), 1.0);
  const auto row = listed::evaluate_row(solver, x, v);
  for (size_t t = 0; t < 499; ++t) {
    double sum = 0;
    for (size_t e = 0; e < 49; ++e) sum += row.marginals[49 * t + e];
    ASSERT_NEAR(sum, 1, 1e-12);
  }
  for (const double c : row.covariance) ASSERT_NEAR(c, 0, 1e-12);  // <z, 1> is the same for all z
}

// Rounding changes sums of such scores by more than 1.
TEST(ChainDistribution, OfHugeScoresIsTheBestSequence) {
  const Chain solver{.length = 4, .labels = 3};
  for (const double scale : {1e9, 1e15, 1e30, 1e300}) {
    listed::Rng rng(5);
    for (int round = 0; round < 50; ++round) {
      auto x = listed::reals<double>(rng, solver.size(), 1);
      const auto v = listed::reals<double>(rng, solver.size(), 1);
      for (double& score : x) score = scale * score;
      std::vector<double> z(x.size());
      Status status{};
      solve_rows(solver,
                 Rows<double>{.count = 1, .scores = x.data(), .z = z.data(), .status = &status});
      const auto row = listed::evaluate_row(solver, x, v);
      for (size_t e = 0; e < x.size(); ++e) {
        ASSERT_NEAR(row.marginals[e], z[e], 1e-12) << scale;
        ASSERT_NEAR(row.covariance[e], 0, 1e-12) << scale;
      }
    }
  }
}

TEST(ChainDistribution, SaysWhyARowHasNoDistribution) {
  const Chain solver{.length = 3, .labels = 1};
  const auto status = [&](std::vector<double> x, const Structure& mask = {}) {
    const auto row = listed::evaluate_row(solver, x, {0, 0}, mask);
    EXPECT_TRUE(row.status == Status::kOk ||
                (std::isnan(row.log_partition) && std::isnan(row.marginals[1]) &&
                 std::isnan(row.covariance[0])));
    return row.status;
  };
  EXPECT_EQ(status({0, kNaN}), Status::kNaN);
  EXPECT_EQ(status({0, kInf}), Status::kNaN);
  EXPECT_EQ(status({0, kNaN}, {1, 0}), Status::kOk);
  EXPECT_EQ(status({0, -kInf}), Status::kDisconnected);
  EXPECT_EQ(status({0, 0}, {0, 1}), Status::kDisconnected);
  EXPECT_EQ(status({0, 0}, {0, 0}), Status::kOk);  // a chain of length 1
  const Chain two{.length = 3, .labels = 2};       // no step is empty, and no sequence is left
  const std::vector<double> x = {0, -kInf, -kInf, -kInf, -kInf, -kInf, 0, 0};
  EXPECT_EQ(listed::evaluate_row(two, x, x).status, Status::kDisconnected);
}

TEST(ChainDistribution, SamplesAsOftenAsItShould) {
  const Chain solver{.length = 4, .labels = 3};
  for (uint64_t seed = 0; seed < 5; ++seed) {
    listed::Rng rng(seed);
    const auto x = listed::reals<float>(rng, solver.size(), 2);
    listed::expect_frequencies(solver, sequences(solver), x, {.seed = seed}, 20'000);
  }
  // By logarithms: an edge that may not be, and a spread beyond that of plain numbers.
  std::vector<double> x(static_cast<size_t>(solver.size()), 0.0);
  x[4] = -kInf;
  x[10] = -2000;
  std::vector<Structure> possible;
  for (const Structure& z : sequences(solver)) {
    if (z[4] == 0 && z[10] == 0) possible.push_back(z);
  }
  listed::expect_frequencies(solver, possible, x, {.seed = 9}, 20'000);
}

}  // namespace
}  // namespace aimle
