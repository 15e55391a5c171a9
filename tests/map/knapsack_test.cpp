// Knapsacks of large capacity against the table of knapsack.h, as it stands.
#include "aimle/map/knapsack.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "aimle/map/knapsack_core.h"
#include "tests/draws.h"

namespace aimle {
namespace {

using draws::one_in;
using draws::Rng;
using draws::uniform;

template <class T>
struct Instance {
  std::vector<int64_t> data;  // weights, capacity
  std::vector<T> scores;

  int64_t n() const { return static_cast<int64_t>(scores.size()); }
};

/// Values that differ much, little or not at all from what the weight suggests, with ties, and with
/// some that rounding absorbs.
template <class T>
T draw_score(Rng& rng, int kind, int64_t weight) {
  const auto real = [&] { return static_cast<double>(uniform(rng, 1, 1 << 20)) / (1 << 10); };
  const auto heavy = static_cast<double>(weight);
  switch (kind) {
    case 0:
      return static_cast<T>(real());
    case 1:
      return static_cast<T>(uniform(rng, -1, 5));
    case 2:
      return static_cast<T>(heavy);
    case 3:
      return static_cast<T>(heavy + 50.0);
    case 4:
      return static_cast<T>(std::ldexp(real(), static_cast<int>(-uniform(rng, 0, 40))));
    case 5:
      return static_cast<T>(heavy * (1.0 + std::ldexp(real(), -30)));
    default:
      return T(1) / T(3);
  }
}
constexpr int kKinds = 7;

template <class T>
Instance<T> draw(Rng& rng, int kind) {
  const int64_t n = one_in(rng, 4) ? uniform(rng, 30, 60) : uniform(rng, 1, 16);
  const int64_t largest = uniform(rng, 100, 1000);
  Instance<T> row;
  int64_t total = 0;
  for (int64_t j = 0; j < n; ++j) {
    const bool again = j > 0 && one_in(rng, 8);
    const int64_t weight = one_in(rng, 12) ? 0 : uniform(rng, 1, largest);
    row.data.push_back(again ? row.data.back() : weight);
    total += row.data.back();
    row.scores.push_back(draw_score<T>(rng, kind, row.data.back()));
  }
  row.data.push_back(one_in(rng, 8) ? total + 1 : uniform(rng, total / 8, total));
  return row;
}

/// By the recursion of knapsack.h.
template <class T>
std::vector<T> table_solution(const Instance<T>& row) {
  const int64_t n = row.n(), capacity = row.data.back(), line = capacity + 1;
  std::vector<T> best(static_cast<size_t>((n + 1) * line));  // f(j - 1, c)
  const auto at = [&](int64_t j, int64_t c) -> T& {
    return best[static_cast<size_t>(j * line + c)];
  };
  const auto takes = [&](int64_t j, int64_t c) {
    const int64_t weight = row.data[static_cast<size_t>(j)];
    return weight <= c && at(j, c - weight) + row.scores[static_cast<size_t>(j)] > at(j, c);
  };
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t c = 0; c < line; ++c) {
      const int64_t weight = row.data[static_cast<size_t>(j)];
      at(j + 1, c) =
          takes(j, c) ? at(j, c - weight) + row.scores[static_cast<size_t>(j)] : at(j, c);
    }
  }
  std::vector<T> z(static_cast<size_t>(n));
  int64_t left = capacity;
  for (int64_t j = n; j-- > 0;) {
    if (!takes(j, left)) continue;
    z[static_cast<size_t>(j)] = T(1);
    left -= row.data[static_cast<size_t>(j)];
  }
  return z;
}

template <class T>
std::vector<T> solve(const Instance<T>& row) {
  std::vector<T> z(row.scores.size());
  Status status = Status::kOk;
  solve_rows(Knapsack{.n = row.n()}, Rows<T>{.count = 1,
                                             .scores = row.scores.data(),
                                             .data = {.numbers = row.data.data()},
                                             .z = z.data(),
                                             .status = &status});
  EXPECT_EQ(status, Status::kOk);
  return z;
}

/// Whether the items in doubt are enough, so that there is no table.
template <class T>
bool has_core(const Instance<T>& row) {
  detail::KnapsackItems items;
  const Knapsack solver{.n = row.n()};
  const auto wanted = [&](int64_t j) { return row.scores[static_cast<size_t>(j)] > T(0); };
  EXPECT_EQ(items.read(solver, row.data.data(), wanted), Status::kOk);
  std::vector<T> z(row.scores.size());
  return detail::KnapsackCore<T>().solve(items, row.scores.data(), z.data());
}

template <class T>
void compare(int count) {
  for (int kind = 0; kind < kKinds; ++kind) {
    int cores = 0;
    for (int seed = 0; seed < count; ++seed) {
      Rng rng(static_cast<uint64_t>(1000 * kind + seed));
      const Instance<T> row = draw<T>(rng, kind);
      ASSERT_EQ(solve(row), table_solution(row)) << "kind " << kind << ", seed " << seed;
      cores += has_core(row);
    }
    EXPECT_GT(cores, count / 10) << "kind " << kind;
  }
}

TEST(Knapsack, HasTheSolutionOfTheTableIfTheCapacityIsLargeInFloat) { compare<float>(300); }
TEST(Knapsack, HasTheSolutionOfTheTableIfTheCapacityIsLargeInDouble) { compare<double>(300); }

TEST(Knapsack, TakesTheTableWhereSumsOverflow) {
  Rng rng(7);
  Instance<float> row = draw<float>(rng, 0);
  while (row.data.back() < 2000) row = draw<float>(rng, 0);
  EXPECT_TRUE(has_core(row));
  for (const float huge :
       {std::numeric_limits<float>::max(), std::numeric_limits<float>::infinity()}) {
    row.scores.front() = huge;
    EXPECT_FALSE(has_core(row));
    EXPECT_EQ(solve(row), table_solution(row)) << huge;
  }
}

}  // namespace
}  // namespace aimle
