#include "aimle/exact/tree_distribution.h"

#include <numeric>

#include "aimle/exact/uniform.h"
#include "aimle/exact/wilson.h"
#include "tests/exact/listed.h"

namespace aimle {
namespace {

using listed::Structure;
using Layout = SpanningTree::Layout;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class T>
void check_against_the_list(Layout layout, double spread, double rounding = 1e-13) {
  const auto draw = [layout](listed::Rng& rng) {
    return SpanningTree{.vertices = listed::uniform(rng, 2, 6), .layout = layout};
  };
  listed::check_graphs<T>(draw, 7, spread, rounding);
}

TEST(TreeDistribution, IsWhatTheListOfTreesSays) {
  check_against_the_list<float>(Layout::kUndirected, 2);
  check_against_the_list<double>(Layout::kUndirected, 2);
  check_against_the_list<double>(Layout::kDirected, 2);
}

TEST(TreeDistribution, HoldsWhereScoresAreFarApart) {
  check_against_the_list<float>(Layout::kUndirected, 30);
  check_against_the_list<double>(Layout::kUndirected, 30);
  check_against_the_list<double>(Layout::kDirected, 30);
}

TEST(TreeDistribution, HoldsInLogarithms) {
  check_against_the_list<double>(Layout::kUndirected, 400, 1e-12);
}

TEST(TreeDistribution, HoldsForTwoClusters) {
  for (const double inside : {30.0, 200.0}) {
    const SpanningTree solver{.vertices = 6};
    std::vector<double> x, v;
    for (int64_t i = 0; i < 6; ++i) {
      for (int64_t j = i + 1; j < 6; ++j) {
        x.push_back((i < 3) == (j < 3) ? inside : -inside);
        v.push_back(static_cast<double>(i) - 0.3 * static_cast<double>(j));
      }
    }
    listed::expect_near(listed::evaluate_row(solver, x, v),
                        listed::evaluate(listed::structures(solver), x, v), 5);
  }
}

TEST(TreeDistribution, OfEqualWeightsIsKnown) {
  const SpanningTree solver{.vertices = 10};
  for (const float weight : {0.0f, 25.0f, -25.0f}) {
    const std::vector<float> x(45, weight), v(45, 1.0f);
    const auto row = listed::evaluate_row(solver, x, v);
    EXPECT_FLOAT_EQ(row.log_partition, static_cast<float>(8 * std::log(10.0) + 9 * weight));
    for (size_t e = 0; e < 45; ++e) {
      EXPECT_FLOAT_EQ(row.marginals[e], 0.2f);
      EXPECT_NEAR(row.covariance[e], 0, 1e-15);
    }
  }
}

TEST(TreeDistribution, OfManyVerticesIsConsistent) {
  for (const double spread : {1.0, 30.0, 500.0}) {
    const SpanningTree solver{.vertices = 30};
    listed::Rng rng(5);
    auto x = listed::reals<double>(rng, solver.size(), spread);
    const auto v = listed::reals<double>(rng, solver.size(), 1);
    const auto row = listed::evaluate_row(solver, x, v);
    EXPECT_NEAR(std::accumulate(row.marginals.begin(), row.marginals.end(), 0.0), 29, 1e-12);
    EXPECT_NEAR(std::accumulate(row.covariance.begin(), row.covariance.end(), 0.0), 0, 1e-12);
    const double h = 1e-5;
    auto ahead = x, behind = x;
    for (size_t e = 0; e < x.size(); ++e) {
      ahead[e] += h * v[e];
      behind[e] -= h * v[e];
    }
    const auto right = listed::evaluate_row(solver, ahead, v);
    const auto left = listed::evaluate_row(solver, behind, v);
    const double slope = std::inner_product(v.begin(), v.end(), row.marginals.begin(), 0.0);
    EXPECT_NEAR((right.log_partition - left.log_partition) / (2 * h), slope, 1e-5 * spread);
    for (size_t e = 0; e < x.size(); ++e) {
      ASSERT_NEAR((right.marginals[e] - left.marginals[e]) / (2 * h), row.covariance[e], 1e-8);
    }
  }
}

TEST(TreeDistribution, SaysWhyARowHasNoDistribution) {
  const auto status = [](std::vector<double> x, const Structure& mask = {}) {
    return listed::evaluate_row(SpanningTree{.vertices = 3}, x, {0, 0, 0}, mask).status;
  };
  EXPECT_EQ(status({0, 1, 2}), Status::kOk);
  EXPECT_EQ(status({0, 1, kNaN}), Status::kNaN);
  EXPECT_EQ(status({0, 1, kInf}), Status::kNaN);
  EXPECT_EQ(status({0, 1, kNaN}, {1, 1, 0}), Status::kOk);
  EXPECT_EQ(status({0, 1, -kInf}), Status::kOk);
  EXPECT_EQ(status({0, -kInf, -kInf}), Status::kDisconnected);
  EXPECT_EQ(status({0, 1, kNaN}, {1, 0, 1}), Status::kNaN);
}

TEST(TreeDistribution, OfOneVertexIsCertain) {
  Status status{};
  double log_partition = 1;
  evaluate(
      SpanningTree{.vertices = 1},
      DistributionRows<double>{.count = 1, .status = &status, .log_partition = &log_partition});
  EXPECT_EQ(status, Status::kOk);
  EXPECT_EQ(log_partition, 0);
}

TEST(TreeDistribution, SamplesAsOftenAsItShould) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    listed::Rng rng(seed);
    const SpanningTree solver{.vertices = 4,
                              .layout = seed % 2 ? Layout::kDirected : Layout::kUndirected};
    for (const double spread : {0.7, 3.0}) {  // by walks, and edge by edge
      const auto x = listed::reals<float>(rng, solver.size(), spread);
      listed::expect_frequencies(solver, listed::structures(solver), x, {.seed = seed}, 20'000);
    }
  }
  const SpanningTree solver{.vertices = 4};
  const Structure mask = {1, 0, 1, 1, 1, 1};
  listed::expect_frequencies(solver, listed::unmasked(listed::structures(solver), mask),
                             std::vector<double>{1, 9, 0, -1, 1, 2}, {.seed = 9}, 20'000, mask);
}

TEST(TreeDistribution, SamplesOfManyVerticesHaveTheMarginals) {
  for (const double spread : {1.0, 2.0}) {  // by walks, and edge by edge
    const SpanningTree solver{.vertices = 12};
    listed::Rng rng(21);
    const auto x = listed::reals<double>(rng, solver.size(), spread);
    listed::expect_marginals(solver, x, 4000);
  }
}

TEST(Wilson, GivesUpAfterItsStepsAndChoosesNothing) {
  std::vector<double> cumulative(16, 0.0);
  std::vector<int32_t> next(4);
  std::vector<uint8_t> in_tree(4);
  detail::Walks walks{
      .n = 4, .cumulative = cumulative.data(), .next = next.data(), .in_tree = in_tree.data()};
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = i + 1; j < 4; ++j) walks.set_edge(i, j, (i < 2) == (j < 2) ? 1 : 1e-12);
  }
  for (int64_t i = 0; i < 4; ++i) walks.finish_row(i);
  walks.start();
  const auto number = [](int64_t step) { return uniform(Key{.seed = 1}, 0, 0, step); };
  int64_t chosen = 0;
  EXPECT_FALSE(walks.draw(1000, number, [&](int64_t, int64_t) { ++chosen; }));
  EXPECT_EQ(chosen, 0);
}

TEST(TreeDistribution, SamplesEndWhereScoresAreFarApart) {
  for (const double inside : {30.0, 400.0}) {
    const SpanningTree solver{.vertices = 6};
    std::vector<double> x;
    for (int64_t i = 0; i < 6; ++i) {
      for (int64_t j = i + 1; j < 6; ++j) x.push_back((i < 3) == (j < 3) ? inside : -inside);
    }
    const int64_t samples = 4000;
    const auto mu = listed::evaluate_row(solver, x, x).marginals;
    const auto z = listed::sample_row(solver, x, samples, {.seed = 3});
    for (size_t e = 0; e < x.size(); ++e) {
      double seen = 0;
      for (int64_t s = 0; s < samples; ++s) seen += z[static_cast<size_t>(s) * x.size() + e];
      EXPECT_NEAR(seen / samples, mu[e], 5 * std::sqrt(mu[e] * (1 - mu[e]) / samples));
    }
  }
}

}  // namespace
}  // namespace aimle
