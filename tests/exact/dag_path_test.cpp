#include "aimle/exact/dag_distribution.h"

#include <algorithm>

#include "tests/exact/listed.h"
#include "tests/map/graph_path_instances.h"

namespace aimle {
namespace {

using listed::Structure;
using Data = std::vector<int64_t>;

constexpr double kInf = std::numeric_limits<double>::infinity();

using Drawn = listed::WithData<DagPath>;

std::vector<Structure> structures(const Drawn& solver) {
  return conformance::Instances<DagPath>::enumerate(solver, solver.data.data());
}

/// One with a path.
Drawn draw(listed::Rng& rng) {
  while (true) {
    const DagPath settings{.vertices = listed::uniform(rng, 2, 7),
                           .edges = listed::uniform(rng, 1, 16)};
    const Drawn solver{settings, conformance::Instances<DagPath>::draw_data(settings, rng)};
    if (!structures(solver).empty()) return solver;
  }
}

template <class T>
void check_against_the_list(double spread) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    listed::Rng rng(seed);
    const Drawn solver = draw(rng);
    const auto x = listed::reals<T>(rng, solver.edges, spread);
    const auto v = listed::reals<T>(rng, solver.edges, 1);
    Structure mask(static_cast<size_t>(solver.edges));
    for (uint8_t& allowed : mask) allowed = listed::uniform(rng, 0, 4) > 0;
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << "\n  data" << listed::text(solver.data) << "\n  scores"
                 << listed::text(x) << "\n  mask" << listed::text(mask));
    const auto left = listed::unmasked(structures(solver), mask);
    const auto row = listed::evaluate_row(solver, x, v, mask);
    if (left.empty()) {
      ASSERT_EQ(row.status, Status::kDisconnected);
      continue;
    }
    // Logarithms of numbers up to e^(7 spread) have errors of as many roundings.
    listed::expect_near(row, listed::evaluate(left, x, v), 1, 1e-13 + 1e-15 * 10 * spread);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(DagPathDistribution, IsWhatTheListOfPathsSays) {
  check_against_the_list<float>(2);
  check_against_the_list<double>(2);
}

TEST(DagPathDistribution, HoldsWhereScoresAreFarApart) {
  check_against_the_list<float>(5);  // beyond it marginals are too small for float
  check_against_the_list<double>(30);
  check_against_the_list<double>(300);
}

TEST(DagPathDistribution, SamplesHaveTheirProbabilities) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    listed::Rng rng(seed);
    Drawn solver = draw(rng);
    while (structures(solver).size() < 3) solver = draw(rng);
    const auto x = listed::reals<double>(rng, solver.edges, 1);
    listed::expect_frequencies(solver, structures(solver), x, {.seed = seed, .stream = 3}, 20000);
    if (HasFatalFailure()) return;
  }
}

TEST(DagPathDistribution, RefusesRowsAsTheSolverDoes) {
  const auto solver = [](int64_t source, int64_t target) {
    return Drawn{{.vertices = 3, .edges = 3},
                 conformance::graph_data(3, source, target, {{0, 1, 0}, {1, 2, 1}, {0, 2, 2}})};
  };
  const std::vector<double> x = {1, 2, 3}, v = {0, 0, 0};
  const auto status = [&](const Drawn& drawn, const std::vector<double>& scores) {
    return listed::evaluate_row(drawn, scores, v).status;
  };
  EXPECT_EQ(status(solver(0, 2), x), Status::kOk);
  EXPECT_EQ(status(solver(2, 0), x), Status::kDisconnected);
  EXPECT_EQ(status(solver(0, 3), x), Status::kBadData);
  EXPECT_EQ(status(solver(0, 2), {1, kInf, 3}), Status::kNaN);
  EXPECT_EQ(status(solver(0, 2), {1, -kInf, -kInf}), Status::kDisconnected);
  EXPECT_EQ(listed::evaluate_row(solver(0, 2), {1, -kInf, 3}, v).marginals[2], 1);
  EXPECT_EQ(listed::evaluate_row(solver(1, 1), x, v).log_partition, 0) << "the path without arcs";
}

}  // namespace
}  // namespace aimle
