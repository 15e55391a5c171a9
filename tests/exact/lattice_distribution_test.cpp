#include "aimle/exact/lattice_distribution.h"

#include <numeric>

#include "tests/exact/listed.h"
#include "tests/map/lattice_path_instances.h"

namespace aimle {
namespace {

using conformance::Instances;
using listed::Structure;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Holes here and there, and now and then a smaller lattice.
template <class S>
Structure draw_mask(const S& solver, listed::Rng& rng) {
  Structure mask(static_cast<size_t>(solver.size()), 1);
  const int64_t height = listed::uniform(rng, 1, solver.height);
  const int64_t width = listed::uniform(rng, 1, solver.width);
  const bool ragged = listed::uniform(rng, 0, 1) == 1;
  for (size_t j = 0; j < mask.size(); ++j) {
    const auto cell = static_cast<int64_t>(j) / S::kPerCell;
    const bool padding = cell / solver.width >= height || cell % solver.width >= width;
    mask[j] = !(ragged && padding) && listed::uniform(rng, 0, 9) > 0;
  }
  return mask;
}

template <class S, class T>
void check_against_the_list(double spread, double rounding) {
  int64_t refused = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    listed::Rng rng(seed);
    const S solver = Instances<S>::draw_small(rng);
    const auto x = listed::reals<T>(rng, solver.size(), spread);
    auto v = listed::reals<T>(rng, solver.size(), 1);
    const Structure mask = seed % 3 == 0 ? Structure(x.size(), 1) : draw_mask(solver, rng);
    for (size_t j = 0; j < v.size(); ++j) {
      if (!mask[j]) v[j] = std::numeric_limits<T>::quiet_NaN();
    }
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << ", " << Instances<S>::text(solver) << "\n  scores"
                 << listed::text(x) << "\n  mask  " << listed::text(mask));
    const std::vector<char> bytes(mask.begin(), mask.end());
    const auto paths =
        Instances<S>::enumerate_row(solver, reinterpret_cast<const bool*>(bytes.data()));
    const auto row = listed::evaluate_row(solver, x, v, mask);
    if (paths.empty()) {
      ++refused;
      ASSERT_EQ(row.status, Status::kDisconnected);
      ASSERT_TRUE(std::isnan(row.log_partition) && std::isnan(row.marginals[0]));
      continue;
    }
    listed::expect_near(row, listed::evaluate(paths, x, v), 1, rounding);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_LT(refused, 200);
}

TEST(LatticeDistribution, IsWhatTheListOfPathsSays) {
  check_against_the_list<LatticePath, float>(2, 1e-13);
  check_against_the_list<LatticePath, double>(2, 1e-13);
  check_against_the_list<LatticeMoves, float>(2, 1e-13);
  check_against_the_list<LatticeMoves, double>(2, 1e-13);
}

TEST(LatticeDistribution, HoldsWhereScoresAreFarApart) {
  check_against_the_list<LatticePath, double>(30, 1e-13);
  check_against_the_list<LatticeMoves, double>(30, 1e-13);
  check_against_the_list<LatticePath, double>(60, 1e-13);
}

TEST(LatticeDistribution, OfEqualScoresCountsPaths) {
  const LatticePath solver{.height = 20, .width = 20, .moves = LatticePath::Moves::kStraight};
  const std::vector<double> x(400, -25.0), v(400, 1.0);
  const auto row = listed::evaluate_row(solver, x, v);
  EXPECT_NEAR(row.log_partition, std::log(solver.structure_count()) - 25.0 * 39, 1e-11);
  EXPECT_NEAR(row.marginals[1], 0.5, 1e-13);
  for (const double cov : row.covariance) EXPECT_NEAR(cov, 0, 1e-12) << "all paths have 39 cells";
}

template <class S>
void check_large(const S& solver, double spread) {
  listed::Rng rng(5);
  const auto x = listed::reals<double>(rng, solver.size(), spread);
  const auto v = listed::reals<double>(rng, solver.size(), 1);
  const auto row = listed::evaluate_row(solver, x, v);
  ASSERT_EQ(row.status, Status::kOk);
  const double h = 1e-5;
  auto ahead = x, behind = x;
  for (size_t j = 0; j < x.size(); ++j) {
    ahead[j] += h * v[j];
    behind[j] -= h * v[j];
  }
  const auto right = listed::evaluate_row(solver, ahead, v);
  const auto left = listed::evaluate_row(solver, behind, v);
  const double slope = std::inner_product(v.begin(), v.end(), row.marginals.begin(), 0.0);
  EXPECT_NEAR((right.log_partition - left.log_partition) / (2 * h), slope, 1e-5);
  for (size_t j = 0; j < x.size(); ++j) {
    ASSERT_NEAR((right.marginals[j] - left.marginals[j]) / (2 * h), row.covariance[j], 1e-6);
    ASSERT_TRUE(row.marginals[j] >= 0 && row.marginals[j] <= 1 + 1e-12);
  }
}

TEST(LatticeDistribution, OfLargeLatticesIsConsistent) {
  for (const double spread : {1.0, 30.0}) {
    check_large(LatticePath{.height = 60, .width = 45}, spread);
    check_large(LatticePath{.height = 60, .width = 45, .moves = LatticePath::Moves::kDiagonal},
                spread);
    check_large(LatticeMoves{.height = 30, .width = 45}, spread);
  }
}

TEST(LatticeDistribution, SaysWhyARowHasNone) {
  const auto status = [](const std::vector<double>& x, const Structure& mask = {}) {
    return listed::evaluate_row(LatticePath{.height = 2, .width = 2}, x, {0, 0, 0, 0}, mask).status;
  };
  EXPECT_EQ(status({0, 1, 2, 3}), Status::kOk);
  EXPECT_EQ(status({0, 1, kNaN, -kInf}), Status::kNaN);
  EXPECT_EQ(status({0, 1, kInf, 3}), Status::kNaN);
  EXPECT_EQ(status({0, 1, kNaN, kNaN}, {1, 1, 0, 0}), Status::kOk);
  EXPECT_EQ(status({0, -kInf, -kInf, 0}), Status::kOk);
  EXPECT_EQ(status({-kInf, 0, 0, 0}), Status::kDisconnected);
  EXPECT_EQ(status({0, 1, 2, 3}, {0, 0, 0, 0}), Status::kDisconnected);
}

TEST(LatticeDistribution, OfOneCellIsCertain) {
  const auto path = listed::evaluate_row(LatticePath{.height = 1, .width = 1},
                                         std::vector<double>{3.0}, std::vector<double>{1.0});
  EXPECT_EQ(path.log_partition, 3.0);
  EXPECT_EQ(path.marginals[0], 1.0);
  EXPECT_EQ(path.covariance[0], 0.0);
  const auto moves = listed::evaluate_row(LatticeMoves{.height = 1, .width = 1},
                                          std::vector<double>(3), std::vector<double>(3));
  EXPECT_EQ(moves.log_partition, 0.0);
  EXPECT_EQ(moves.marginals, std::vector<double>(3));
}

template <class S>
void check_frequencies(const S& solver, uint64_t seed, const Structure& mask) {
  listed::Rng rng(seed);
  const auto x = listed::reals<double>(rng, solver.size(), 1.5);
  const std::vector<char> bytes(mask.begin(), mask.end());
  const auto paths = Instances<S>::enumerate_row(
      solver, mask.empty() ? nullptr : reinterpret_cast<const bool*>(bytes.data()));
  listed::expect_frequencies(solver, paths, x, {.seed = seed}, 20'000, mask);
}

TEST(LatticeDistribution, SamplesAsOftenAsItShould) {
  for (const auto moves :
       {LatticePath::Moves::kAll, LatticePath::Moves::kStraight, LatticePath::Moves::kDiagonal}) {
    check_frequencies(LatticePath{.height = 4, .width = 3, .moves = moves}, 1, {});
  }
  check_frequencies(LatticeMoves{.height = 3, .width = 3}, 2, {});
  check_frequencies(LatticePath{.height = 3, .width = 4}, 3, {1, 1, 1, 0, 1, 0, 1, 0, 1, 1, 1, 0});
}

}  // namespace
}  // namespace aimle
