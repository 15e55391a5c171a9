#include "aimle/estimate/thresholds.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/estimate/cases.h"

namespace aimle::cases {
namespace {

struct Row {
  std::vector<double> x, z;
  std::valarray<bool> mask;
  Status status = Status::kOk;
};

/// Solves x; z is NaN if there is no solution.
Row solve_row(const Solver& solver, std::vector<double> x, std::valarray<bool> mask) {
  Row row{.x = std::move(x), .z = {}, .mask = std::move(mask)};
  row.z.resize(row.x.size());
  std::visit(
      [&](const auto& concrete) {
        solve_rows(concrete, Rows<double>{.count = 1,
                                          .scores = row.x.data(),
                                          .mask = row.mask.size() ? &row.mask[0] : nullptr,
                                          .z = row.z.data(),
                                          .status = &row.status});
      },
      solver);
  return row;
}

std::string describe_row(uint64_t seed, const Solver& solver, int64_t j) {
  return "seed " + std::to_string(seed) + " solver " + std::to_string(solver.index()) +
         " n=" + std::to_string(size_of(solver)) + " entry " + std::to_string(j);
}

// The definition itself: just above its threshold j is in, just below its partner is in its place.
TEST(ThresholdsTest, EntriesEnterAndLeaveAtTheirThresholdsWithTheirPartners) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng(seed);
    const int64_t size = uniform(rng, 1, 30);
    const Solver solver = draw_solver(static_cast<int>(rng() % 4), size, rng);
    const int64_t n = size_of(solver);
    std::vector<double> x(static_cast<size_t>(n));
    for (double& value : x) value = normal(rng);
    std::valarray<bool> mask;
    if (one_in(rng, 3)) {
      mask.resize(x.size());
      for (bool& allowed : mask) allowed = !one_in(rng, 6);
    }
    const Row row = solve_row(solver, x, mask);
    std::vector<uint8_t> chosen(x.size());
    for (size_t j = 0; j < x.size(); ++j) chosen[j] = row.z[j] == 1.0;
    ThresholdFinder<double> finder(solver);
    std::vector<double> threshold(x.size());
    std::vector<int64_t> partner(x.size());
    const bool found = finder.find(x.data(), mask.size() ? &mask[0] : nullptr, nullptr,
                                   chosen.data(), threshold.data(), partner.data());
    ASSERT_EQ(found, row.status == Status::kOk) << describe_row(seed, solver, -1);
    if (!found) continue;
    std::vector<double> mark(x.size()), gain(x.size());
    for (int64_t j = 0; j < n; ++j) {
      if (mask.size() && !mask[static_cast<size_t>(j)]) continue;
      const std::string where = describe_row(seed, solver, j);
      const auto at = static_cast<size_t>(j);
      std::vector<double> above = x, below = x;
      if (partner[at] < 0) {
        above[at] = 1e6;
        below[at] = -1e6;
        ASSERT_EQ(solve_row(solver, above, mask).z, row.z) << where;
        ASSERT_EQ(solve_row(solver, below, mask).z, row.z) << where;
        continue;
      }
      above[at] = threshold[at] + 1e-9;
      below[at] = threshold[at] - 1e-9;
      const Row in = solve_row(solver, above, mask), out = solve_row(solver, below, mask);
      ASSERT_EQ(in.z[at], 1.0) << where;
      ASSERT_EQ(out.z[at], 0.0) << where;
      ASSERT_EQ(out.z[static_cast<size_t>(partner[at])], 1.0) << where;
      // <d, z_in - z_out> is what the folded gradient says.
      for (double& value : mark) value = normal(rng);
      finder.fold(mark.data(), gain.data());
      double expected = 0.0;
      for (size_t i = 0; i < x.size(); ++i) expected += mark[i] * (in.z[i] - out.z[i]);
      ASSERT_NEAR(gain[at] - gain[static_cast<size_t>(partner[at])], expected, 1e-12) << where;
    }
  }
}

TEST(ThresholdsTest, MisuseIsRefused) {
  EXPECT_THROW(ThresholdFinder<float>(GridPath{.height = 3, .width = 3}), std::invalid_argument);
  EstimatorSettings settings{.noise = {.kind = NoiseKind::kGumbel},
                             .difference = Difference::kThresholds,
                             .target = ThresholdTarget{}};
  settings.validate();
  auto refused = [&](auto change) {
    EstimatorSettings changed = settings;
    change(changed);
    EXPECT_THROW(changed.validate(), std::invalid_argument);
  };
  refused([](auto& s) { s.target = FixedTarget{}; });
  refused([](auto& s) { s.difference = Difference::kCentral; });
  refused([](auto& s) { s.theta_temperature = 0.0; });
  refused([](auto& s) { s.target = ThresholdTarget{.density = NoiseKind::kNormal}; });
  refused([](auto& s) { s.target = ThresholdTarget{.max_weight = 0.0}; });
  refused([](auto& s) {
    s.noise.kind = NoiseKind::kSumOfGamma;
    s.target = ThresholdTarget{.density = NoiseKind::kSumOfGamma};
  });
}

}  // namespace
}  // namespace aimle::cases
