#include "aimle/exact/arborescence_distribution.h"

#include <numeric>

#include "tests/exact/listed.h"

namespace aimle {
namespace {

using listed::Structure;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class T>
void check_against_the_list(bool single_root, double spread, double rounding = 1e-13) {
  const auto draw = [single_root](listed::Rng& rng) {
    return Arborescence{.vertices = listed::uniform(rng, 1, 5), .single_root = single_root};
  };
  listed::check_graphs<T>(draw, 4, spread, rounding);
}

TEST(ArborescenceDistribution, IsWhatTheListSays) {
  check_against_the_list<float>(false, 2);
  check_against_the_list<double>(false, 2);
  check_against_the_list<double>(true, 2);
}

TEST(ArborescenceDistribution, HoldsWhereScoresAreFarApart) {
  check_against_the_list<float>(false, 8);
  check_against_the_list<double>(false, 30);
  check_against_the_list<float>(true, 8, 1e-11);
  check_against_the_list<double>(true, 30, 1e-11);
}

TEST(ArborescenceDistribution, HoldsInLogarithms) {
  check_against_the_list<double>(false, 400, 1e-11);
  check_against_the_list<double>(true, 400, 1e-10);
}

TEST(ArborescenceDistribution, OfEqualWeightsIsKnown) {
  const double n = 10;
  for (const double weight : {0.0, 25.0, -25.0}) {
    const std::vector<double> x(100, weight), v(100, 1.0);
    const auto free = listed::evaluate_row(Arborescence{.vertices = 10}, x, v);
    EXPECT_NEAR(free.log_partition, 9 * std::log(n + 1) + 10 * weight, 1e-10);
    EXPECT_NEAR(free.marginals[0], 2 / (n + 1), 1e-14);  // a root; (n + 1)^(n - 2) * 2 of them
    const auto single =
        listed::evaluate_row(Arborescence{.vertices = 10, .single_root = true}, x, v);
    EXPECT_NEAR(single.log_partition, 9 * std::log(n) + 10 * weight, 1e-10);
    EXPECT_NEAR(single.marginals[0], 1 / n, 1e-14);
    EXPECT_NEAR(single.marginals[1], 1 / n, 1e-14);
  }
}

TEST(ArborescenceDistribution, OfManyVerticesIsConsistent) {
  for (const bool single_root : {false, true}) {
    for (const double spread : {1.0, 30.0, 300.0}) {
      const Arborescence solver{.vertices = 25, .single_root = single_root};
      listed::Rng rng(5);
      auto x = listed::reals<double>(rng, solver.size(), spread);
      const auto v = listed::reals<double>(rng, solver.size(), 1);
      const auto row = listed::evaluate_row(solver, x, v);
      EXPECT_NEAR(std::accumulate(row.marginals.begin(), row.marginals.end(), 0.0), 25, 1e-10);
      EXPECT_NEAR(std::accumulate(row.covariance.begin(), row.covariance.end(), 0.0), 0, 1e-10);
      double roots = 0;
      for (size_t i = 0; i < 25; ++i) {
        double heads = 0;
        for (size_t h = 0; h < 25; ++h) heads += row.marginals[h * 25 + i];
        EXPECT_NEAR(heads, 1, 1e-11);
        roots += row.marginals[i * 26];
      }
      if (single_root) {
        EXPECT_NEAR(roots, 1, 1e-11);
      }
      const double h = 1e-5;
      auto ahead = x, behind = x;
      for (size_t e = 0; e < x.size(); ++e) {
        ahead[e] += h * v[e];
        behind[e] -= h * v[e];
      }
      const auto right = listed::evaluate_row(solver, ahead, v);
      const auto left = listed::evaluate_row(solver, behind, v);
      for (size_t e = 0; e < x.size(); ++e) {
        ASSERT_NEAR((right.marginals[e] - left.marginals[e]) / (2 * h), row.covariance[e], 1e-7);
      }
    }
  }
}

TEST(ArborescenceDistribution, SaysWhyARowHasNoDistribution) {
  const auto status = [](std::vector<double> x, bool single_root = false) {
    return listed::evaluate_row(Arborescence{.vertices = 2, .single_root = single_root}, x,
                                std::vector<double>(4))
        .status;
  };
  EXPECT_EQ(status({0, 1, 2, 3}), Status::kOk);
  EXPECT_EQ(status({0, 1, kNaN, 3}), Status::kNaN);
  EXPECT_EQ(status({0, 1, kInf, 3}), Status::kNaN);
  EXPECT_EQ(status({-kInf, 1, 2, -kInf}), Status::kDisconnected);
  EXPECT_EQ(status({0, -kInf, -kInf, 0}), Status::kOk);
  EXPECT_EQ(status({0, -kInf, -kInf, 0}, true), Status::kDisconnected);
}

TEST(ArborescenceDistribution, SamplesAsOftenAsItShould) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    listed::Rng rng(seed);
    const Arborescence solver{.vertices = 3, .single_root = seed % 2 == 1};
    const auto x = listed::reals<float>(rng, solver.size(), seed < 2 ? 1.0 : 3.0);
    listed::expect_frequencies(solver, listed::structures(solver), x, {.seed = seed}, 20'000);
  }
  const Arborescence solver{.vertices = 3};
  const Structure mask = {1, 0, 1, 1, 1, 1, 1, 1, 0};
  listed::expect_frequencies(solver, listed::unmasked(listed::structures(solver), mask),
                             std::vector<double>{1, 9, 0, -1, 1, 2, 0, 1, 2}, {.seed = 9}, 20'000,
                             mask);
}

TEST(ArborescenceDistribution, SamplesOfManyVerticesHaveTheMarginals) {
  for (const bool single_root : {false, true}) {
    const Arborescence solver{.vertices = 10, .single_root = single_root};
    listed::Rng rng(21);
    const auto x = listed::reals<double>(rng, solver.size(), 2);
    listed::expect_marginals(solver, x, 3000);
  }
}

TEST(ArborescenceDistribution, SamplesWhereScoresAreFarApart) {
  listed::Rng rng(2);
  const Arborescence solver{.vertices = 6, .single_root = true};
  const auto x = listed::reals<double>(rng, solver.size(), 400);
  const auto z = listed::sample_row(solver, x, 3, {.seed = 1});
  std::vector<double> best(x.size());
  Status status{};
  solve(solver, Rows<double>{.count = 1, .scores = x.data(), .z = best.data(), .status = &status});
  for (size_t i = 0; i < z.size(); ++i) EXPECT_EQ(z[i], best[i % best.size()]);
}

}  // namespace
}  // namespace aimle
