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
  const LatticeMoves one{.height = 1, .width = 1};
  const std::vector<double> v(3);
  EXPECT_EQ(listed::evaluate_row(one, {0, kNaN, 0}, v).status, Status::kNaN);
  EXPECT_EQ(listed::evaluate_row(one, {0, 1e30, 0}, v).status, Status::kOk);
  EXPECT_EQ(listed::evaluate_row(one, {0, -kInf, 0}, v, {0, 0, 0}).status, Status::kDisconnected);
}

TEST(LatticeDistribution, WallsHideNoPathThatIsFarBelow) {
  // The only path left scores some thousand less than the ones that a wall cuts off.
  const auto path = listed::evaluate_row(LatticePath{.height = 2, .width = 2},
                                         std::vector<double>{0, 3000, -3000, 0}, {1, 1, 1, 1},
                                         Structure{1, 0, 1, 1});
  EXPECT_EQ(path.marginals, (std::vector<double>{1, 0, 0, 1})) << "the diagonal";
  const LatticeMoves straight{.height = 2, .width = 2, .moves = LatticeMoves::Moves::kStraight};
  std::vector<double> x(12);
  x[3 * 1 + 2] = 3000;   // right, then
  x[3 * 3 + 1] = -kInf;  // down is a wall
  x[3 * 2 + 1] = -3000;  // down, then right
  const auto moves = listed::evaluate_row(straight, x, std::vector<double>(12));
  ASSERT_EQ(moves.status, Status::kOk);
  EXPECT_DOUBLE_EQ(moves.log_partition, -3000);
  EXPECT_DOUBLE_EQ(moves.marginals[3 * 2 + 1], 1);
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

/// All quantities of a batch, evaluated in parts of `at_once` rows.
template <class S>
std::vector<float> evaluate_in_parts(const S& solver, const std::vector<float>& x,
                                     const std::vector<float>& v, int64_t at_once) {
  const auto rows = static_cast<int64_t>(x.size()) / solver.size();
  const auto entries = static_cast<int64_t>(x.size());
  std::vector<float> out(static_cast<size_t>(rows + 2 * entries));
  std::vector<Status> status(static_cast<size_t>(rows));
  const DistributionRows<float> all{.count = rows,
                                    .scores = x.data(),
                                    .v = v.data(),
                                    .status = status.data(),
                                    .log_partition = out.data(),
                                    .marginals = out.data() + rows,
                                    .covariance = out.data() + rows + entries};
  for (int64_t i = 0; i < rows; i += at_once) {
    evaluate_rows(solver, slice(all, solver.size(), i, std::min(i + at_once, rows)));
  }
  for (const Status one : status) EXPECT_EQ(one, Status::kOk);
  return out;
}

TEST(LatticeDistribution, DoesNotDependOnItsNeighboursOrTheInstructionSet) {
  listed::Rng rng(4);
  const LatticeMoves solver{.height = 9, .width = 7};
  const auto x = listed::reals<float>(rng, 21 * solver.size(), 20);
  const auto v = listed::reals<float>(rng, 21 * solver.size(), 1);
  const auto expected = evaluate_in_parts(solver, x, v, 21);
  for (const Isa isa : conformance::instruction_sets()) {
    const conformance::WithIsa with(isa);
    for (const int64_t at_once : {1, 3, 8, 20, 21}) {
      EXPECT_EQ(evaluate_in_parts(solver, x, v, at_once), expected) << name(isa) << at_once;
    }
  }
}

TEST(LatticeDistribution, TakesScoresOfAnySize) {
  const LatticePath solver{.height = 2, .width = 2};
  for (const double size : {1e3, 1e8, 1e12, 1e30, 1e300}) {
    const auto row = listed::evaluate_row(solver, std::vector<double>{-size, size, size, size / 4},
                                          std::vector<double>{1, 2, 3, 4});
    ASSERT_EQ(row.status, Status::kOk);
    EXPECT_NEAR(row.log_partition / size, 0.25 + std::log(2) / size, 1e-15) << size;
    const double marginals[] = {1, 0.5, 0.5, 1}, covariance[] = {0, -0.25, 0.25, 0};
    for (size_t j = 0; j < 4; ++j) {
      EXPECT_NEAR(row.marginals[j], marginals[j], 1e-15) << size;
      EXPECT_NEAR(row.covariance[j], covariance[j], 1e-15) << size;
    }
  }
  // Beside rows of ordinary scores, and of a lattice too large to be evaluated beside others.
  std::vector<float> x(3 * 4, 1.0f), v(x);
  x[5] = x[6] = 3e30f;
  const auto both = evaluate_in_parts(solver, x, v, 3);
  EXPECT_FLOAT_EQ(both[0], 2 + std::log(1 + 2 * std::exp(1.0f)));
  EXPECT_FLOAT_EQ(both[1], 3e30f);
  EXPECT_EQ(both[0], both[2]);
  check_large(LatticePath{.height = 180, .width = 100}, 1.0);
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
