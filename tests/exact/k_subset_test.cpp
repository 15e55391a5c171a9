#include "aimle/exact/k_subset.h"

#include <bit>
#include <numeric>

#include "aimle/exact/categorical.h"
#include "tests/exact/listed.h"

namespace aimle {
namespace {

using listed::Structure;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<Structure> subsets(int64_t n, int64_t k) {
  std::vector<Structure> all;
  for (uint32_t bits = 0; bits < 1u << n; ++bits) {
    if (std::popcount(bits) != k) continue;
    Structure& z = all.emplace_back();
    for (int64_t j = 0; j < n; ++j) z.push_back(bits >> j & 1);
  }
  return all;
}

template <class T>
void check_against_the_list(double spread) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    listed::Rng rng(seed);
    const int64_t n = listed::uniform(rng, 1, 10);
    auto x = listed::reals<T>(rng, n, spread);
    const auto v = listed::reals<T>(rng, n, 1);
    Structure mask(static_cast<size_t>(n));
    for (uint8_t& allowed : mask) allowed = listed::uniform(rng, 0, 4) > 0;
    const int64_t k = listed::uniform(rng, 0, std::accumulate(mask.begin(), mask.end(), 0));
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", k=" << k << "\n  scores"
                                    << listed::text(x) << "\n  mask  " << listed::text(mask));
    const auto expected = listed::evaluate(listed::unmasked(subsets(n, k), mask), x, v);
    listed::expect_near(listed::evaluate_row(TopK{.n = n, .k = k}, x, v, mask), expected, 1);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(KSubset, IsWhatTheListOfSubsetsSays) {
  check_against_the_list<float>(2);
  check_against_the_list<double>(2);
}

TEST(KSubset, HoldsWhereScoresAreFarApart) {
  check_against_the_list<float>(30);
  check_against_the_list<double>(300);
}

TEST(KSubset, OfOneEntryIsTheCategorical) {
  listed::Rng rng(7);
  const auto x = listed::reals<double>(rng, 100, 10), v = listed::reals<double>(rng, 100, 1);
  const auto subset = listed::evaluate_row(TopK{.n = 100, .k = 1}, x, v);
  const auto categorical = listed::evaluate_row(Argmax{.n = 100}, x, v);
  EXPECT_NEAR(subset.log_partition, categorical.log_partition, 1e-13);
  for (size_t j = 0; j < x.size(); ++j) {
    EXPECT_NEAR(subset.marginals[j], categorical.marginals[j], 1e-13 * categorical.marginals[j]);
    EXPECT_NEAR(subset.covariance[j], categorical.covariance[j], 1e-14);
  }
}

/// log of the elementary symmetric polynomial, by the textbook programme in logarithms.
double log_polynomial(const std::vector<double>& x, int64_t k) {
  std::vector<long double> log_e(static_cast<size_t>(k) + 1,
                                 -std::numeric_limits<long double>::infinity());
  log_e[0] = 0;
  for (const double score : x) {
    for (size_t r = log_e.size() - 1; r > 0; --r) {
      const long double a = log_e[r], b = log_e[r - 1] + score;
      const long double high = std::max(a, b), low = std::min(a, b);
      if (!std::isinf(high)) log_e[r] = high + std::log1p(std::exp(low - high));
    }
  }
  return static_cast<double>(log_e.back());
}

TEST(KSubset, OfAHundredOfAThousandLosesNothing) {
  for (const double spread : {1.0, 30.0, 1000.0}) {
    listed::Rng rng(11);
    const int64_t n = 1000, k = 100;
    const auto x = listed::reals<float>(rng, n, spread), v = listed::reals<float>(rng, n, 1);
    const std::vector<double> wide(x.begin(), x.end()), wide_v(v.begin(), v.end());
    const TopK solver{.n = n, .k = k};
    const auto row = listed::evaluate_row(solver, wide, wide_v);
    ASSERT_EQ(row.status, Status::kOk);
    const double reference = log_polynomial(wide, k);
    EXPECT_NEAR(row.log_partition, reference, 1e-13 * std::abs(reference)) << spread;
    EXPECT_NEAR(std::accumulate(row.marginals.begin(), row.marginals.end(), 0.0), k, 1e-10);
    EXPECT_NEAR(std::accumulate(row.covariance.begin(), row.covariance.end(), 0.0), 0, 1e-12);

    // mu_j = exp(x_j) e_{k-1}(the others) / e_k, a number per entry.
    for (const size_t j : {size_t{0}, size_t{500}, size_t{999}}) {
      auto others = wide;
      others.erase(others.begin() + static_cast<int64_t>(j));
      const double mu = std::exp(wide[j] + log_polynomial(others, k - 1) - reference);
      EXPECT_NEAR(row.marginals[j], mu, 1e-10 * mu) << spread;
    }

    // float32 rows are the same numbers, rounded.
    const auto narrow = listed::evaluate_row(solver, x, v);
    EXPECT_EQ(narrow.log_partition, static_cast<float>(row.log_partition));
    for (size_t j = 0; j < x.size(); ++j) {
      ASSERT_EQ(narrow.marginals[j], static_cast<float>(row.marginals[j]));
      ASSERT_EQ(narrow.covariance[j], static_cast<float>(row.covariance[j]));
    }

    // The covariance is the derivative of the marginals.
    const double h = 1e-5;
    auto ahead = wide, behind = wide;
    for (size_t j = 0; j < x.size(); ++j) {
      ahead[j] += h * wide_v[j];
      behind[j] -= h * wide_v[j];
    }
    const auto right = listed::evaluate_row(solver, ahead, wide_v);
    const auto left = listed::evaluate_row(solver, behind, wide_v);
    for (size_t j = 0; j < x.size(); ++j) {
      ASSERT_NEAR((right.marginals[j] - left.marginals[j]) / (2 * h), row.covariance[j], 1e-8);
    }
  }
}

TEST(KSubset, OfEqualScoresIsKnown) {
  for (const int64_t k : {1, 10, 1000}) {
    const std::vector<double> x(4000, 3.0), v(4000, 1.0);
    const auto row = listed::evaluate_row(TopK{.n = 4000, .k = k}, x, v);
    const auto chosen = static_cast<double>(k);
    const double log_partition =
        std::lgamma(4001.0) - std::lgamma(chosen + 1) - std::lgamma(4001.0 - chosen) + 3.0 * chosen;
    EXPECT_NEAR(row.log_partition, log_partition, 1e-12 * log_partition + 1e-10) << k;
    for (size_t j = 0; j < x.size(); j += 777) {
      EXPECT_NEAR(row.marginals[j], chosen / 4000, 1e-12) << k;
      EXPECT_NEAR(row.covariance[j], 0, 1e-12) << k;
    }
  }
}

TEST(KSubset, SaysWhyARowHasNoDistribution) {
  const auto status = [](std::vector<double> x, const Structure& mask = {}) {
    return listed::evaluate_row(TopK{.n = 3, .k = 2}, x, {0, 0, 0}, mask).status;
  };
  EXPECT_EQ(status({0, 1, 2}), Status::kOk);
  EXPECT_EQ(status({0, 1, kNaN}), Status::kNaN);
  EXPECT_EQ(status({0, 1, kInf}), Status::kNaN);
  EXPECT_EQ(status({0, 1, kNaN}, {1, 1, 0}), Status::kOk);
  EXPECT_EQ(status({0, 1, -kInf}), Status::kOk);
  EXPECT_EQ(status({0, -kInf, -kInf}), Status::kTooFewEntries);
  EXPECT_EQ(status({0, 1, 2}, {0, 1, 0}), Status::kTooFewEntries);
  const std::vector<double> zeros(3);
  EXPECT_THROW(listed::evaluate_row(TopK{.n = 3, .k = 4}, zeros, zeros), std::invalid_argument);
}

TEST(KSubset, TakesItsKFromTheRow) {
  const std::vector<double> x = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2};
  const std::vector<int64_t> k = {0, 2, 4, -1};
  std::vector<double> mu(12);
  std::vector<Status> status(4);
  evaluate(TopK{.n = 3}, DistributionRows<double>{.count = 4,
                                                  .scores = x.data(),
                                                  .k = k.data(),
                                                  .status = status.data(),
                                                  .marginals = mu.data()});
  EXPECT_EQ(status, (std::vector<Status>{Status::kOk, Status::kOk, Status::kBadK, Status::kBadK}));
  EXPECT_EQ(mu[0] + mu[1] + mu[2], 0);
  EXPECT_NEAR(mu[3] + mu[4] + mu[5], 2, 1e-14);
  EXPECT_TRUE(std::isnan(mu[6]) && std::isnan(mu[11]));
}

TEST(KSubset, SamplesAsOftenAsItShould) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    listed::Rng rng(seed);
    const int64_t n = 6, k = static_cast<int64_t>(seed) % 7;
    const auto x = listed::reals<float>(rng, n, 2);
    listed::expect_frequencies(TopK{.n = n, .k = k}, subsets(n, k), x, {.seed = seed}, 20'000);
  }
  const Structure mask = {1, 0, 1, 1, 0, 1};
  listed::expect_frequencies(TopK{.n = 6, .k = 2}, listed::unmasked(subsets(6, 2), mask),
                             std::vector<double>{1, 9, 0, -1, 9, 2}, {.seed = 9}, 20'000, mask);
}

TEST(KSubset, SamplesEndWhereScoresAreFarApart) {
  const std::vector<double> x = {900, -900, 900, -900, 900};
  const auto z = listed::sample_row(TopK{.n = 5, .k = 4}, x, 1000, {.seed = 1});
  double second = 0;
  for (size_t s = 0; s < 1000; ++s) {
    EXPECT_EQ(z[5 * s] + z[5 * s + 2] + z[5 * s + 4], 3);
    EXPECT_EQ(z[5 * s + 1] + z[5 * s + 3], 1);
    second += z[5 * s + 1];
  }
  EXPECT_NEAR(second, 500, 5 * std::sqrt(250.0));
}

TEST(KSubset, SamplesDependOnKeyInstanceAndSampleAlone) {
  const int64_t n = 20, samples = 3;
  listed::Rng rng(3);
  const auto x = listed::reals<double>(rng, n * 4, 1);
  const TopK solver{.n = n, .k = 5};
  const auto draw = [&](int64_t first, int64_t count, int64_t nb_samples) {
    std::vector<double> z(static_cast<size_t>(count * nb_samples * n));
    std::vector<Status> status(static_cast<size_t>(count));
    sample(solver, SampleRows<double>{.first = first,
                                      .count = count,
                                      .samples = nb_samples,
                                      .scores = x.data() + first * n,
                                      .key = {.seed = 5, .stream = 6},
                                      .status = status.data(),
                                      .z = z.data()});
    return z;
  };
  const auto all = draw(0, 4, samples);
  const auto part = draw(2, 1, 1);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + 2 * samples * n));
}

}  // namespace
}  // namespace aimle
