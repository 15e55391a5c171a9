#include "aimle/exact/knapsack_distribution.h"

#include <algorithm>

#include "aimle/exact/k_subset.h"
#include "tests/exact/listed.h"
#include "tests/map/knapsack_instances.h"

namespace aimle {
namespace {

using listed::Structure;
using Data = std::vector<int64_t>;

constexpr double kInf = std::numeric_limits<double>::infinity();

using Packed = listed::WithData<Knapsack>;

Packed packed(Data data) { return {{.n = std::ssize(data) - 1}, data}; }

std::vector<Structure> structures(const Packed& solver) {
  return conformance::Instances<Knapsack>::enumerate(solver, solver.data.data());
}

Data draw_data(int64_t n, listed::Rng& rng) {
  Data data = conformance::Instances<Knapsack>::draw_data({.n = n}, rng);
  std::replace(data.begin(), data.end(), int64_t{-1}, int64_t{0});
  return data;
}

template <class T>
void check_against_the_list(double spread) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    listed::Rng rng(seed);
    const int64_t n = listed::uniform(rng, 1, 10);
    const Packed solver = packed(draw_data(n, rng));
    const auto x = listed::reals<T>(rng, n, spread), v = listed::reals<T>(rng, n, 1);
    Structure mask(static_cast<size_t>(n));
    for (uint8_t& allowed : mask) allowed = listed::uniform(rng, 0, 4) > 0;
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << "\n  data" << listed::text(solver.data) << "\n  scores"
                 << listed::text(x) << "\n  mask" << listed::text(mask));
    const auto expected = listed::evaluate(listed::unmasked(structures(solver), mask), x, v);
    // Logarithms of numbers up to e^(10 spread) have errors of as many roundings.
    const double rounding = 1e-13 + 1e-15 * 10 * spread;
    listed::expect_near(listed::evaluate_row(solver, x, v, mask), expected, 1, rounding);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(KnapsackDistribution, IsWhatTheListOfSetsSays) {
  check_against_the_list<float>(2);
  check_against_the_list<double>(2);
}

TEST(KnapsackDistribution, HoldsWhereScoresAreFarApart) {
  check_against_the_list<float>(30);
  check_against_the_list<double>(300);
}

TEST(KnapsackDistribution, SamplesHaveTheirProbabilities) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    listed::Rng rng(seed);
    const Packed solver = packed(draw_data(5, rng));
    const double spread = seed % 2 == 0 ? 1 : 100;  // the second by logarithms
    auto x = listed::reals<double>(rng, 5, 1);
    if (spread > 1) x[0] = -spread, x[1] = -4 * spread;
    listed::expect_frequencies(solver, structures(solver), x, {.seed = seed, .stream = 3}, 20000);
    if (HasFatalFailure()) return;
  }
}

TEST(KnapsackDistribution, RefusesRowsAsTheSolverDoes) {
  const std::vector<double> x = {1, 2}, v = {0, 0};
  EXPECT_EQ(listed::evaluate_row(packed({1, -1, 3}), x, v).status, Status::kBadData);
  EXPECT_EQ(listed::evaluate_row(packed({1, 1, 3}), {1, kInf}, v).status, Status::kNaN);
  Packed small = packed({3, 5, 8});
  small.max_capacity = 4;
  EXPECT_EQ(listed::evaluate_row(small, x, v).status, Status::kTooLarge);
  const auto hidden = listed::evaluate_row(packed({1, 1, 3}), {1, -kInf}, v);
  EXPECT_EQ(hidden.marginals[1], 0);
}

}  // namespace
}  // namespace aimle
