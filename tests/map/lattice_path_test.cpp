#include "aimle/map/lattice_path.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/map/lattice_path_instances.h"
#include "tests/message_of.h"

namespace aimle {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Outcome {
  Status status{};
  std::vector<int> chosen;
};

/// Nine copies of a row, so that kernels which solve several at once take part.
template <class S>
Outcome solve_row(const S& solver, const std::vector<float>& x, const std::vector<int>& mask = {}) {
  conformance::Batch<float> batch{.count = 9, .size = solver.size()};
  batch.mask.resize(9 * mask.size());
  for (size_t r = 0; r < 9; ++r) {
    batch.scores.insert(batch.scores.end(), x.begin(), x.end());
    for (size_t j = 0; j < mask.size(); ++j) batch.mask[r * mask.size() + j] = mask[j] != 0;
  }
  solver.validate();
  const auto solved = conformance::solve_batch(solver, batch);
  conformance::expect_oracle(solver, batch, solved);
  Outcome outcome{.status = solved.status[8]};
  for (size_t j = 0; j < x.size(); ++j) {
    if (solved.z[8 * x.size() + j] == 1) outcome.chosen.push_back(static_cast<int>(j));
  }
  return outcome;
}

using Chosen = std::vector<int>;

TEST(LatticePath, OfEqualScoresGoesDiagonallyLast) {
  const std::vector<float> zeros(6);
  EXPECT_EQ(solve_row(LatticePath{.height = 2, .width = 3}, zeros).chosen, (Chosen{0, 1, 5}));
  EXPECT_EQ(solve_row(LatticePath{.height = 3, .width = 2}, zeros).chosen, (Chosen{0, 2, 5}));
  const LatticePath straight{.height = 2, .width = 3, .moves = LatticePath::Moves::kStraight};
  EXPECT_EQ(solve_row(straight, zeros).chosen, (Chosen{0, 1, 2, 5}));
}

TEST(LatticePath, TakesWhatTheMovesAllow) {
  const std::vector<float> x{0, 9, 9,  //
                             1, 0, 0,  //
                             5, 5, 0};
  EXPECT_EQ(solve_row(LatticePath{.height = 3, .width = 3}, x).chosen, (Chosen{0, 1, 2, 5, 8}));
  const LatticePath diagonal{.height = 3, .width = 3, .moves = LatticePath::Moves::kDiagonal};
  EXPECT_EQ(solve_row(diagonal, x).chosen, (Chosen{0, 4, 8}));
}

TEST(LatticePath, OneCellForEachRowOfADiagonalAlignment) {
  const LatticePath wide{.height = 2, .width = 3, .moves = LatticePath::Moves::kDiagonal};
  EXPECT_EQ(solve_row(wide, std::vector<float>(6)).status, Status::kDisconnected);
  const std::vector<int> narrow{1, 1, 0, 1, 1, 0};
  EXPECT_EQ(solve_row(wide, std::vector<float>(6), narrow).chosen, (Chosen{0, 4}));
}

TEST(LatticePath, AMaskMovesTheCorner) {
  const LatticePath solver{.height = 3, .width = 3};
  const std::vector<float> x{0, 0, kNaN, 0, 0, kNaN, kNaN, kNaN, kNaN};
  EXPECT_EQ(solve_row(solver, x, {1, 1, 0, 1, 1, 0, 0, 0, 0}).chosen, (Chosen{0, 4}));
  EXPECT_EQ(solve_row(solver, x, {1, 0, 0, 0, 0, 0, 0, 0, 0}).chosen, (Chosen{0}));
  const std::vector<float> zeros(9);
  EXPECT_EQ(solve_row(solver, zeros, {1, 1, 1, 1, 0, 1, 1, 1, 1}).chosen, (Chosen{0, 1, 5, 8}));
  // A row and a column still reach the corner, which is itself masked.
  EXPECT_EQ(solve_row(solver, zeros, {1, 1, 1, 1, 1, 1, 1, 1, 0}).status, Status::kDisconnected);
  EXPECT_EQ(solve_row(solver, zeros, {0, 1, 1, 1, 1, 1, 1, 1, 1}).status, Status::kDisconnected);
  EXPECT_EQ(solve_row(solver, zeros, std::vector<int>(9, 0)).status, Status::kDisconnected);
}

TEST(LatticePath, InfinitiesAreWallsAndPrizes) {
  const LatticePath solver{.height = 2, .width = 2};
  EXPECT_EQ(solve_row(solver, {0, 1, -kInf, 0}).chosen, (Chosen{0, 1, 3}));
  EXPECT_EQ(solve_row(solver, {0, -kInf, kInf, 0}).chosen, (Chosen{0, 2, 3}));
  EXPECT_EQ(solve_row(solver, {0, 5, 5, -kInf}).status, Status::kDisconnected);
  EXPECT_EQ(solve_row(solver, {-kInf, 5, 5, kInf}).status, Status::kDisconnected);
  EXPECT_EQ(solve_row(solver, {-3e38f, 0, 0, -3e38f}).status, Status::kDisconnected);
  EXPECT_EQ(solve_row(solver, {0, kNaN, 0, -kInf}).status, Status::kNaN);
}

TEST(LatticeMoves, MarksTheMovesOfThePath) {
  const LatticeMoves solver{.height = 2, .width = 2};
  const auto entry = [](int t, int u, int m) { return 3 * (2 * t + u) + m; };
  std::vector<float> x(12);
  EXPECT_EQ(solve_row(solver, x).chosen, (Chosen{entry(1, 1, 0)}));
  x[static_cast<size_t>(entry(0, 1, 2))] = 1;
  EXPECT_EQ(solve_row(solver, x).chosen, (Chosen{entry(0, 1, 2), entry(1, 1, 1)}));
  x[static_cast<size_t>(entry(1, 1, 1))] = -kInf;
  EXPECT_EQ(solve_row(solver, x).chosen, (Chosen{entry(1, 1, 0)}));
  x[0] = kNaN;
  EXPECT_EQ(solve_row(solver, x).status, Status::kNaN) << "though nothing enters the first cell";
}

TEST(LatticeMoves, OfOneCellHasNone) {
  const LatticeMoves solver{.height = 1, .width = 1};
  const Outcome outcome = solve_row(solver, {1, 2, 3});
  EXPECT_EQ(outcome.status, Status::kOk);
  EXPECT_TRUE(outcome.chosen.empty());
  EXPECT_EQ(solver.structures(), std::vector<uint8_t>(3));
}

template <class S>
void expect_listed(double count, const S& solver) {
  const auto expected = conformance::Instances<S>::enumerate(solver, std::nullopt);
  const std::vector<uint8_t> all = solver.structures();
  EXPECT_EQ(solver.structure_count(), count);
  EXPECT_EQ(static_cast<double>(expected.size()), count);
  ASSERT_EQ(all.size(), expected.size() * static_cast<size_t>(solver.size()));
  for (size_t at = 0; at < all.size(); at += static_cast<size_t>(solver.size())) {
    const std::vector<uint8_t> z(all.begin() + static_cast<int64_t>(at),
                                 all.begin() + static_cast<int64_t>(at) + solver.size());
    EXPECT_EQ(std::count(expected.begin(), expected.end(), z), 1);
  }
}

TEST(LatticePath, ListsItsPaths) {
  using Moves = LatticePath::Moves;
  expect_listed(63, LatticePath{.height = 4, .width = 4});
  expect_listed(25, LatticePath{.height = 3, .width = 4});
  expect_listed(20, LatticePath{.height = 4, .width = 4, .moves = Moves::kStraight});
  expect_listed(10, LatticePath{.height = 6, .width = 3, .moves = Moves::kDiagonal});
  expect_listed(1, LatticePath{.height = 1, .width = 5});
  expect_listed(63, LatticeMoves{.height = 4, .width = 4});
  expect_listed(15, LatticeMoves{.height = 3, .width = 5, .moves = LatticeMoves::Moves::kStraight});
  EXPECT_NE(message_of<std::invalid_argument>([] {
              LatticePath{.height = 30, .width = 30}.structures();
            }).find("at most 1000000 structures"),
            std::string::npos);
  EXPECT_NE(message_of<std::invalid_argument>([] {
              LatticePath{.height = 2, .width = 3, .moves = Moves::kDiagonal}.structures();
            }).find("at least as many rows as columns"),
            std::string::npos);
}

TEST(LatticePath, BadSizesAreNamed) {
  EXPECT_EQ(
      message_of<std::invalid_argument>([] { LatticePath{.height = 0, .width = 3}.validate(); }),
      "[aimle::lattice_path] expected height >= 1 and width >= 1 but got height=0, width=3");
  EXPECT_NE(message_of<std::invalid_argument>([] {
              LatticePath{.height = 1 << 15, .width = 1 << 15}.validate();
            }).find("at most 268435456 cells"),
            std::string::npos);
  const int64_t shape[] = {4, 5, 2};
  EXPECT_NE(message_of<std::invalid_argument>([&] {
              LatticeMoves{}.fit(shape);
            }).find("last dimension of 2"),
            std::string::npos);
}

}  // namespace
}  // namespace aimle
