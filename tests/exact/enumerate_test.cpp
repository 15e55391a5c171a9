#include "aimle/exact/enumerate.h"

#include <set>
#include <variant>

#include "aimle/registry/library_solvers.h"
#include "tests/exact/listed.h"

namespace aimle {
namespace {

using Layout = SpanningTree::Layout;

constexpr double kInf = std::numeric_limits<double>::infinity();

template <class S>
std::vector<std::vector<int>> structures(const S& solver) {
  const std::vector<uint8_t> all = enumerate(solver);
  std::vector<std::vector<int>> list;
  for (size_t at = 0; at < all.size(); at += static_cast<size_t>(solver.size())) {
    list.emplace_back(all.begin() + static_cast<int64_t>(at),
                      all.begin() + static_cast<int64_t>(at) + solver.size());
  }
  return list;
}

template <class S>
void expect_count(const S& solver, size_t count) {
  const auto list = structures(solver);
  EXPECT_EQ(list.size(), count);
  EXPECT_EQ(std::set(list.begin(), list.end()).size(), count) << "some are listed twice";
}

TEST(Enumerate, CountsWhatIsKnown) {
  expect_count(Argmax{.n = 7}, 7);
  expect_count(TopK{.n = 10, .k = 0}, 1);
  expect_count(TopK{.n = 10, .k = 4}, 210);
  expect_count(TopK{.n = 10, .k = 10}, 1);
  for (const Layout layout : {Layout::kUndirected, Layout::kDirected}) {
    expect_count(SpanningTree{.vertices = 2, .layout = layout}, 1);
    expect_count(SpanningTree{.vertices = 6, .layout = layout}, 1296);
  }
  expect_count(SpanningTree{.vertices = 7}, 16807);
  expect_count(GridPath{.height = 1, .width = 1}, 1);
  expect_count(GridPath{.height = 2, .width = 2}, 4);
  expect_count(GridPath{.height = 2, .width = 2, .neighbourhood = 4}, 2);
  expect_count(GridPath{.height = 3, .width = 3, .neighbourhood = 4}, 11);
  expect_count(GridPath{.height = 4, .width = 4}, 3441);
}

/// The best structure of the list is the solver's answer.
template <class S>
void expect_the_solvers_answer(const S& solver) {
  const auto list = structures(solver);
  for (uint64_t seed = 0; seed < 50; ++seed) {
    listed::Rng rng(seed);
    auto x = listed::reals<double>(rng, solver.size(), 1);
    if (S::kSense == Sense::kMin) {
      for (double& cost : x) cost += 1;
    }
    const auto value = [&](const std::vector<int>& z) {
      double sum = 0;
      for (size_t j = 0; j < x.size(); ++j) sum += z[j] ? x[j] : 0;
      return S::kSense == Sense::kMax ? sum : -sum;
    };
    const auto best =
        *std::max_element(list.begin(), list.end(),
                          [&](const auto& a, const auto& b) { return value(a) < value(b); });
    std::vector<double> z(x.size());
    Status status{};
    solve(solver, Rows<double>{.count = 1, .scores = x.data(), .z = z.data(), .status = &status});
    EXPECT_EQ(std::vector<double>(best.begin(), best.end()), z) << "seed " << seed;
  }
}

TEST(Enumerate, HoldsTheSolversAnswer) {
  expect_the_solvers_answer(Argmax{.n = 5});
  expect_the_solvers_answer(TopK{.n = 8, .k = 3});
  expect_the_solvers_answer(SpanningTree{.vertices = 5});
  expect_the_solvers_answer(SpanningTree{.vertices = 4, .layout = Layout::kDirected});
  expect_the_solvers_answer(GridPath{.height = 3, .width = 4});
  expect_the_solvers_answer(
      GridPath{.height = 4, .width = 3, .neighbourhood = 4, .target = {1, 2}});
  expect_the_solvers_answer(GridPath{.height = 4, .width = 4});
}

TEST(Enumerate, RefusesWhatIsTooLarge) {
  EXPECT_THROW(enumerate(TopK{.n = 60, .k = 30}), std::invalid_argument);
  EXPECT_THROW(enumerate(SpanningTree{.vertices = 8}), std::invalid_argument);
  EXPECT_THROW(enumerate(GridPath{.height = 5, .width = 4}), std::invalid_argument);
  EXPECT_THROW(enumerate(TopK{.n = 3, .k = 4}), std::invalid_argument);
}

/// A function of all of z.
double entangled(const uint8_t* z, size_t size) {
  double product = 1, sum = 0;
  for (size_t j = 0; j < size; ++j) {
    sum += static_cast<double>(z[j]) * static_cast<double>(j + 1);
    product *= z[j] ? 1.3 : 0.9;
  }
  return std::sin(sum) + product;
}

TEST(Expectation, HasTheGradientOfFiniteDifferences) {
  const std::vector<Solver> solvers = {
      Argmax{.n = 6}, TopK{.n = 6, .k = 3}, SpanningTree{.vertices = 4},
      SpanningTree{.vertices = 4, .layout = Layout::kDirected}, GridPath{.height = 3, .width = 3}};
  for (const Solver& solver : solvers) {
    const int64_t size = solver.size();
    listed::Rng rng(13);
    const auto x = listed::reals<double>(rng, size, 1);
    const auto f = [&](const uint8_t* z) { return entangled(z, x.size()); };
    const Expectation exact = expectation(solver, x.data(), nullptr, f);
    ASSERT_EQ(exact.status, Status::kOk);
    for (size_t j = 0; j < x.size(); ++j) {
      const double h = 1e-5;
      auto ahead = x, behind = x;
      ahead[j] += h;
      behind[j] -= h;
      const double slope = (expectation(solver, ahead.data(), nullptr, f).value -
                            expectation(solver, behind.data(), nullptr, f).value) /
                           (2 * h);
      ASSERT_NEAR(exact.gradient[j], slope, 1e-8) << "solver " << solver.name();
    }
  }
}

/// E f(z) and its gradient for f(z) = ||z - b||^2 = sum_j b_j^2 + (1 - 2 b_j) z_j, which is linear in
/// z: sum_j b_j^2 + (1 - 2 b_j) mu_j and Cov(z) (1 - 2 b).
template <class S>
Expectation expected_square(const S& solver, const std::vector<double>& x,
                            const std::vector<double>& b) {
  std::vector<double> slope(b.size()), mu(b.size());
  for (size_t j = 0; j < b.size(); ++j) slope[j] = 1 - 2 * b[j];
  Expectation result{.gradient = std::vector<double>(b.size())};
  evaluate(solver, DistributionRows<double>{.count = 1,
                                            .scores = x.data(),
                                            .v = slope.data(),
                                            .status = &result.status,
                                            .marginals = mu.data(),
                                            .covariance = result.gradient.data()});
  for (size_t j = 0; j < b.size(); ++j) result.value += b[j] * b[j] + slope[j] * mu[j];
  return result;
}

TEST(Expectation, OfASquareIsTheCovarianceInClosedForm) {
  using Distribution = std::variant<Argmax, TopK, SpanningTree>;
  const std::vector<Distribution> distributions = {Argmax{.n = 6}, TopK{.n = 6, .k = 3},
                                                   SpanningTree{.vertices = 4}};
  for (const Distribution& distribution : distributions) {
    std::visit(
        [](const auto& solver) {
          listed::Rng rng(17);
          const auto x = listed::reals<double>(rng, solver.size(), 2);
          const auto b = listed::reals<double>(rng, solver.size(), 2);
          const auto square = [&](const uint8_t* z) {
            double sum = 0;
            for (size_t j = 0; j < b.size(); ++j) sum += (z[j] - b[j]) * (z[j] - b[j]);
            return sum;
          };
          const Expectation listed = expectation(solver, x.data(), nullptr, square);
          const Expectation closed = expected_square(solver, x, b);
          const auto row = listed::evaluate_row(solver, x, b);
          EXPECT_EQ(closed.status, Status::kOk);
          EXPECT_NEAR(closed.value, listed.value, 1e-13);
          for (size_t j = 0; j < x.size(); ++j) {
            EXPECT_NEAR(closed.gradient[j], listed.gradient[j], 1e-13);
            EXPECT_NEAR(closed.gradient[j], -2 * row.covariance[j], 1e-13);
          }
        },
        distribution);
  }
}

TEST(Expectation, OfOneVertexIsThatOfTheEmptyTree) {
  const auto five = [](const uint8_t*) { return 5.0; };
  EXPECT_EQ(expectation(SpanningTree{.vertices = 1}, nullptr, nullptr, five).value, 5.0);
}

TEST(Expectation, LeavesOutWhatIsMaskedAndSaysWhenNothingIsLeft) {
  const auto first = [](const uint8_t* z) { return static_cast<double>(z[0]); };
  const std::vector<double> x = {0, 0, -kInf};
  const bool mask[] = {true, true, false}, none[] = {false, false, false};
  EXPECT_DOUBLE_EQ(expectation(Argmax{.n = 3}, x.data(), nullptr, first).value, 0.5);
  EXPECT_DOUBLE_EQ(expectation(Argmax{.n = 3}, x.data(), mask, first).value, 0.5);
  const auto status = [&](const Solver& solver, const double* scores, const bool* allowed) {
    return expectation(solver, scores, allowed, first).status;
  };
  EXPECT_EQ(status(Argmax{.n = 3}, x.data(), none), Status::kTooFewEntries);
  EXPECT_EQ(status(SpanningTree{.vertices = 3}, x.data(), none), Status::kDisconnected);
  const std::vector<double> nan = {0, 0, std::numeric_limits<double>::quiet_NaN()};
  EXPECT_EQ(status(Argmax{.n = 3}, nan.data(), nullptr), Status::kNaN);
  EXPECT_EQ(status(Argmax{.n = 3}, nan.data(), mask), Status::kOk);
  const std::vector<double> walls = {0, kInf, kInf, 0};
  const GridPath grid{.height = 2, .width = 2, .neighbourhood = 4};
  EXPECT_EQ(status(grid, walls.data(), nullptr), Status::kDisconnected);
}

}  // namespace
}  // namespace aimle
