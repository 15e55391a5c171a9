#include "aimle/exact/bernoulli_distribution.h"

#include <stdexcept>

#include "tests/exact/listed.h"
#include "tests/message_of.h"

namespace aimle {
namespace {

using listed::Structure;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<Structure> flips(int64_t n) {
  const std::vector<uint8_t> all = Bernoulli{.n = n}.structures();
  std::vector<Structure> result;
  for (int64_t s = 0; s < int64_t{1} << n; ++s) {
    result.emplace_back(all.begin() + s * n, all.begin() + (s + 1) * n);
  }
  return result;
}

template <class T>
void check_against_the_list() {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    listed::Rng rng(seed);
    const int64_t n = listed::uniform(rng, 1, 8);
    const auto x = listed::reals<T>(rng, n, seed % 2 ? 30 : 2);
    auto v = listed::reals<T>(rng, n, 1);
    Structure mask(static_cast<size_t>(n), 1);
    for (size_t j = 0; j < mask.size(); ++j) {
      mask[j] = listed::uniform(rng, 0, 3) > 0;
      if (!mask[j]) v[j] = static_cast<T>(kNaN);
    }
    SCOPED_TRACE(testing::Message() << "seed " << seed << ":" << listed::text(x));
    const auto expected = listed::evaluate(listed::unmasked(flips(n), mask), x, v);
    listed::expect_near(listed::evaluate_row(Bernoulli{.n = n}, x, v, mask), expected, 1);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(BernoulliDistribution, IsWhatTheListOfFlipsSays) {
  check_against_the_list<float>();
  check_against_the_list<double>();
}

TEST(BernoulliDistribution, HoldsAtExtremeScores) {
  const std::vector<double> x = {1e6, -1e6, 700, -kInf, 0}, v = {1, 2, 1, kNaN, 4};
  const auto row = listed::evaluate_row(Bernoulli{.n = 5}, x, v);
  EXPECT_EQ(row.status, Status::kOk);
  EXPECT_DOUBLE_EQ(row.log_partition, 1e6 + 700 + std::log(2.0));
  EXPECT_EQ(row.marginals, (std::vector<double>{1, 0, 1, 0, 0.5}));
  EXPECT_DOUBLE_EQ(row.covariance[2], std::exp(-700.0));
  EXPECT_EQ(row.covariance[4], 1);
}

TEST(BernoulliDistribution, SaysWhyARowHasNoDistribution) {
  const auto status = [](std::vector<double> x, const Structure& mask = {}) {
    return listed::evaluate_row(Bernoulli{.n = 2}, x, {0, 0}, mask).status;
  };
  EXPECT_EQ(status({0, kNaN}), Status::kNaN);
  EXPECT_EQ(status({0, kInf}), Status::kNaN);
  EXPECT_EQ(status({0, kNaN}, {1, 0}), Status::kOk);
  EXPECT_EQ(status({0, 0}, {0, 0}), Status::kOk);
}

TEST(BernoulliDistribution, SamplesAsOftenAsItShould) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    listed::Rng rng(seed);
    const auto x = listed::reals<float>(rng, 4, 2);
    listed::expect_frequencies(Bernoulli{.n = 4}, flips(4), x, {.seed = seed}, 20'000);
  }
}

TEST(BernoulliDistribution, ListsAMillionAtMost) {
  EXPECT_EQ(flips(2), (std::vector<Structure>{{0, 0}, {0, 1}, {1, 0}, {1, 1}}));
  EXPECT_EQ(message_of<std::invalid_argument>([] { Bernoulli{.n = 20}.structures(); }),
            "[aimle::enumerate] expected at most 1000000 structures but there are more for n=20");
}

}  // namespace
}  // namespace aimle
