#include "aimle/exact/categorical.h"

#include "tests/exact/listed.h"

namespace aimle {
namespace {

using listed::Structure;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<Structure> unit_vectors(int64_t n) {
  std::vector<Structure> all;
  for (int64_t j = 0; j < n; ++j) {
    all.emplace_back(static_cast<size_t>(n))[static_cast<size_t>(j)] = 1;
  }
  return all;
}

template <class T>
void check_against_the_list() {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    listed::Rng rng(seed);
    const int64_t n = listed::uniform(rng, 1, 9);
    const auto x = listed::reals<T>(rng, n, seed % 2 ? 30 : 2);
    const auto v = listed::reals<T>(rng, n, 1);
    Structure mask(static_cast<size_t>(n), 1);
    for (size_t j = 1; j < mask.size(); ++j) mask[j] = listed::uniform(rng, 0, 3) > 0;
    SCOPED_TRACE(testing::Message() << "seed " << seed << ":" << listed::text(x));
    const auto expected = listed::evaluate(listed::unmasked(unit_vectors(n), mask), x, v);
    listed::expect_near(listed::evaluate_row(Argmax{.n = n}, x, v, mask), expected, 1);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Categorical, IsWhatTheListOfUnitVectorsSays) {
  check_against_the_list<float>();
  check_against_the_list<double>();
}

TEST(Categorical, HoldsAtExtremeScores) {
  const std::vector<double> x = {1e6, -1e6, 1e6, -kInf}, v = {1, 2, 3, kNaN};
  const auto row = listed::evaluate_row(Argmax{.n = 4}, x, v);
  EXPECT_EQ(row.status, Status::kOk);
  EXPECT_DOUBLE_EQ(row.log_partition, 1e6 + std::log(2.0));
  EXPECT_EQ(row.marginals, (std::vector<double>{0.5, 0, 0.5, 0}));
  EXPECT_EQ(row.covariance, (std::vector<double>{-0.5, 0, 0.5, 0}));
}

TEST(Categorical, SaysWhyARowHasNoDistribution) {
  const auto status = [](std::vector<double> x, const Structure& mask = {}) {
    const auto row = listed::evaluate_row(Argmax{.n = 2}, x, {0, 0}, mask);
    EXPECT_TRUE(row.status == Status::kOk ||
                (std::isnan(row.log_partition) && std::isnan(row.marginals[1]) &&
                 std::isnan(row.covariance[0])));
    return row.status;
  };
  EXPECT_EQ(status({0, kNaN}), Status::kNaN);
  EXPECT_EQ(status({0, kInf}), Status::kNaN);
  EXPECT_EQ(status({0, kNaN}, {1, 0}), Status::kOk);
  EXPECT_EQ(status({-kInf, -kInf}), Status::kTooFewEntries);
  EXPECT_EQ(status({0, 0}, {0, 0}), Status::kTooFewEntries);
}

TEST(Categorical, SamplesAsOftenAsItShould) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    listed::Rng rng(seed);
    const auto x = listed::reals<float>(rng, 6, 2);
    listed::expect_frequencies(Argmax{.n = 6}, unit_vectors(6), x, {.seed = seed}, 20'000);
  }
}

}  // namespace
}  // namespace aimle
