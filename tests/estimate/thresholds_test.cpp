#include "aimle/estimate/thresholds.h"

#include <gtest/gtest.h>

#include <cstring>

#include "aimle/base/isa.h"
#include "aimle/estimate/fixed_sum.h"
#include "aimle/estimate/step_size.h"
#include "aimle/estimate/threshold_weight.h"
#include "tests/estimate/cases.h"
#include "tests/estimate/swaps.h"

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
  solver.solve_rows(Rows<double>{.count = 1,
                                 .scores = row.x.data(),
                                 .mask = row.mask.size() ? &row.mask[0] : nullptr,
                                 .z = row.z.data(),
                                 .status = &row.status});
  return row;
}

std::string describe_row(uint64_t seed, const Solver& solver, int64_t j) {
  return "seed " + std::to_string(seed) + " solver " + std::string(solver.name()) +
         " n=" + std::to_string(size_of(solver)) + " entry " + std::to_string(j);
}

// The definition itself: just above its threshold j is in, just below it is out, and one of the two
// is the solution.
TEST(ThresholdsTest, EntriesEnterAndLeaveAtTheirThresholds) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng(seed);
    const int64_t size = uniform(rng, 1, 30);
    const Solver solver =
        draw_threshold_solver(static_cast<int>(seed) % kThresholdSolverCount, size, rng);
    const int64_t n = size_of(solver);
    std::vector<double> x(static_cast<size_t>(n));
    for (double& value : x) value = normal(rng);
    std::valarray<bool> mask;
    if (one_in(rng, 3)) {
      mask.resize(x.size());
      for (bool& allowed : mask) allowed = !one_in(rng, 6);
    }
    const Row row = solve_row(solver, x, mask);
    if (row.status != Status::kOk) continue;
    std::vector<double> d(x.size());
    for (double& value : d) value = normal(rng);
    const SwapsOfRow swaps =
        find_swaps(solver, x.data(), mask.size() ? &mask[0] : nullptr, row.z.data(), d.data());
    ASSERT_TRUE(swaps.solved) << describe_row(seed, solver, 0);
    for (int64_t j = 0; j < n; ++j) {
      if (mask.size() && !mask[static_cast<size_t>(j)]) continue;
      const std::string where = describe_row(seed, solver, j);
      const auto at = static_cast<size_t>(j);
      std::vector<double> above = x, below = x;
      if (!std::isfinite(swaps.threshold[at])) {
        above[at] = 1e6;
        below[at] = -1e6;
        ASSERT_EQ(solve_row(solver, above, mask).z, row.z) << where;
        ASSERT_EQ(solve_row(solver, below, mask).z, row.z) << where;
        continue;
      }
      above[at] = swaps.threshold[at] + 1e-9;
      below[at] = swaps.threshold[at] - 1e-9;
      const Row inside = solve_row(solver, above, mask), out = solve_row(solver, below, mask);
      ASSERT_EQ(inside.z[at], 1.0) << where;
      ASSERT_EQ(out.z[at], 0.0) << where;
      ASSERT_EQ(row.z, row.z[at] == 1.0 ? inside.z : out.z) << where;
      double expected = 0.0;
      for (size_t i = 0; i < x.size(); ++i) expected += d[i] * (inside.z[i] - out.z[i]);
      ASSERT_NEAR(swaps.difference[at], expected, 1e-12) << where;
    }
  }
}

// Sets of more than 64 vertices have several words.
TEST(ThresholdsTest, EdgesOfLargeTreesEnterAndLeaveAtTheirThresholds) {
  for (const int64_t vertices : {63, 64, 65, 130}) {
    for (const auto layout : {SpanningTree::Layout::kUndirected, SpanningTree::Layout::kDirected}) {
      const Solver solver = SpanningTree{.vertices = vertices, .layout = layout};
      Rng rng(static_cast<uint64_t>(vertices));
      std::vector<double> x(static_cast<size_t>(size_of(solver))), d(x.size());
      for (double& value : x) value = static_cast<double>(static_cast<float>(normal(rng)));
      for (double& value : d) value = static_cast<double>(static_cast<float>(normal(rng)));
      const Row row = solve_row(solver, x, {});
      const SwapsOfRow swaps = find_swaps(solver, x.data(), nullptr, row.z.data(), d.data());
      ASSERT_TRUE(swaps.solved);
      if (layout == SpanningTree::Layout::kUndirected) {  // float32 rounds nothing
        const std::vector<float> x32(x.begin(), x.end()), d32(d.begin(), d.end());
        const std::vector<float> z32(row.z.begin(), row.z.end());
        const SwapsOfRow same = find_swaps(solver, x32.data(), nullptr, z32.data(), d32.data());
        ASSERT_EQ(same.threshold, swaps.threshold) << vertices;
        ASSERT_EQ(same.difference, swaps.difference) << vertices;
      }
      for (size_t at = 0; at < x.size(); ++at) {
        if (row.z[at] == 0.0 && !one_in(rng, 50)) continue;
        const std::string where = describe_row(0, solver, static_cast<int64_t>(at));
        std::vector<double> above = x, below = x;
        above[at] = swaps.threshold[at] + 1e-9;
        below[at] = swaps.threshold[at] - 1e-9;
        const Row inside = solve_row(solver, above, {}), out = solve_row(solver, below, {});
        ASSERT_EQ(row.z[at] == 1.0 ? inside.z : out.z, row.z) << where;
        ASSERT_EQ(inside.z[at] - out.z[at], 1.0) << where;
        double expected = 0.0;
        for (size_t i = 0; i < x.size(); ++i) expected += d[i] * (inside.z[i] - out.z[i]);
        ASSERT_NEAR(swaps.difference[at], expected, 1e-12) << where;
      }
    }
  }
}

// Labels of a step are processed a few vectors at a time.
TEST(ThresholdsTest, EdgesOfChainsWithManyLabelsEnterAndLeaveAtTheirThresholds) {
  const Isa before = isa();
  for (const int64_t labels : {31, 33, 40, 65}) {
    const Solver solver = Chain{.length = 4, .labels = labels};
    Rng rng(static_cast<uint64_t>(labels));
    std::vector<double> x(static_cast<size_t>(size_of(solver))), d(x.size());
    for (double& value : x) value = normal(rng);
    for (double& value : d) value = normal(rng);
    const Row row = solve_row(solver, x, {});
    const SwapsOfRow swaps = find_swaps(solver, x.data(), nullptr, row.z.data(), d.data());
    ASSERT_TRUE(swaps.solved);
    for (const Isa set : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
      if (!processor_has(set)) continue;
      use_isa(set);
      const SwapsOfRow same = find_swaps(solver, x.data(), nullptr, row.z.data(), d.data());
      use_isa(before);
      ASSERT_EQ(same.threshold, swaps.threshold) << labels << " labels on " << name(set);
      ASSERT_EQ(same.difference, swaps.difference) << labels << " labels on " << name(set);
    }
    for (size_t at = 0; at < x.size(); ++at) {
      if (row.z[at] == 0.0 && !one_in(rng, 20)) continue;
      const std::string where = describe_row(0, solver, static_cast<int64_t>(at));
      std::vector<double> above = x, below = x;
      above[at] = swaps.threshold[at] + 1e-9;
      below[at] = swaps.threshold[at] - 1e-9;
      const Row inside = solve_row(solver, above, {}), out = solve_row(solver, below, {});
      ASSERT_EQ(row.z[at] == 1.0 ? inside.z : out.z, row.z) << where;
      ASSERT_EQ(inside.z[at] - out.z[at], 1.0) << where;
      double expected = 0.0;
      for (size_t i = 0; i < x.size(); ++i) expected += d[i] * (inside.z[i] - out.z[i]);
      ASSERT_NEAR(swaps.difference[at], expected, 1e-12) << where;
    }
  }
}

/// The gradient as thresholds.h has it, one entry after the other.
template <class T>
Outcome<T> plain_thresholds(const Case<T>& call, const std::vector<T>& z) {
  const PassSettings& settings = call.settings;
  auto target = std::get<ThresholdTarget>(settings.target);
  if (settings.noise.kind == NoiseKind::kNone) target.order = ThresholdTarget::Order::kFirst;
  const int64_t n = call.n(), samples = call.samples();
  const bool fixed_size = call.solver.solution_size().fixed;
  const double shift = static_cast<double>(
      centring<T>(fixed_size ? 0.0 : settings.noise_mean, settings.theta_temperature, Signs{}));
  const Examples<T> examples = call.examples();
  std::vector<T> x(static_cast<size_t>(call.count * samples * n));
  perturb(settings, Sense::kMax, examples, x.data(), sequential());
  Outcome<T> result;
  result.dtheta.resize(static_cast<size_t>(call.count * n));
  const auto size = static_cast<size_t>(n);
  std::vector<double> mass_of(static_cast<size_t>(call.count)), lost_of(mass_of.size());
  int64_t weights = 0, cut = 0;
  for (int64_t b = 0; b < call.count; ++b) {
    const double sign = settings.sense == Sense::kMin ? -1.0 : 1.0;
    std::vector<double> sum(size);
    double mass[kSumLanes] = {}, lost[kSumLanes] = {};
    for (int64_t s = 0; s < samples; ++s) {
      const int64_t row = b * samples + s;
      const T* solution = z.data() + row * n;
      if (n > 0 && std::isnan(solution[0])) {
        std::ranges::fill(sum, std::numeric_limits<double>::quiet_NaN());
        continue;
      }
      const int64_t g = call.rows() == 1 ? 0 : s;
      const SwapsOfRow swaps = find_swaps(call.solver, x.data() + row * n,
                                          examples.mask ? examples.mask + b * n : nullptr, solution,
                                          call.dy.data() + (b * call.rows() + g) * n);
      for (int64_t j = 0; j < n; ++j) {
        const auto at = static_cast<size_t>(j);
        const double t = swaps.threshold[at];
        if (!is_free(examples, b, j) || !std::isfinite(t)) continue;
        const double d = swaps.difference[at];
        const double u = ((t + shift) - sign * static_cast<double>(examples.theta[b * n + j])) /
                         settings.theta_temperature;
        const double w = threshold_weight(target.density, target.order, u, solution[j] == T(1));
        const double kept = std::min(w, target.max_weight);
        weights += 1;
        cut += w > kept;
        mass[j % kSumLanes] += w * std::abs(d);
        lost[j % kSumLanes] += (w - kept) * std::abs(d);
        sum[at] += (target.order == ThresholdTarget::Order::kFirst ? 1.0 : 0.5) * kept * d;
      }
    }
    int64_t free = 0;
    for (int64_t j = 0; j < n; ++j) free += is_free(examples, b, j);
    const double total = fixed_sum(
        n, [&](int64_t j) { return is_free(examples, b, j) ? sum[static_cast<size_t>(j)] : 0.0; });
    const double mean = fixed_size ? total / static_cast<double>(std::max<int64_t>(free, 1)) : 0.0;
    const double scale =
        sign / (settings.theta_temperature *
                (settings.output == Output::kMean ? static_cast<double>(samples) : 1.0));
    for (int64_t j = 0; j < n; ++j) {
      const auto at = static_cast<size_t>(j);
      result.dtheta[static_cast<size_t>(b * n) + at] =
          is_free(examples, b, j) ? static_cast<T>(scale * (sum[at] - mean)) : T(0);
    }
    mass_of[static_cast<size_t>(b)] = fold(mass);
    lost_of[static_cast<size_t>(b)] = fold(lost);
  }
  const auto total = [&](const std::vector<double>& of) {
    return fixed_sum(call.count, [&](int64_t b) { return of[static_cast<size_t>(b)]; });
  };
  result.report.capped_share =
      static_cast<double>(cut) / static_cast<double>(std::max<int64_t>(weights, 1));
  result.report.capped_mass =
      total(mass_of) > 0.0 ? total(lost_of) / total(mass_of) : total(mass_of);
  return result;
}

template <class T>
void expect_the_plain_gradient(uint64_t seed) {
  Rng rng(seed);
  Case<T> call;
  const int64_t size = one_in(rng, 6) ? uniform(rng, 100, 500) : uniform(rng, 1, 45);
  call.solver = draw_threshold_solver(static_cast<int>(seed) % kThresholdSolverCount, size, rng);
  call.count = uniform(rng, 1, 9);
  constexpr NoiseKind kDensities[] = {NoiseKind::kGumbel, NoiseKind::kLogistic, NoiseKind::kNormal};
  const NoiseKind density = kDensities[rng() % 3];
  call.settings = {
      .noise = {.kind = one_in(rng, 5) ? NoiseKind::kNone : density},
      .samples = uniform(rng, 1, 4),
      .theta_temperature = one_in(rng, 2) ? 1.0 : 0.7,
      .sense = one_in(rng, 3) ? Sense::kMin : Sense::kMax,
      .output = one_in(rng, 3) ? Output::kMean : Output::kSamples,
      .difference = Difference::kThresholds,
      .target = ThresholdTarget{.density = density,
                                .order = one_in(rng, 3) ? ThresholdTarget::Order::kFirst
                                                        : ThresholdTarget::Order::kTrapezoid,
                                .max_weight = one_in(rng, 2) ? 20.0 : 0.4}};
  call.settings.target_temperature = call.settings.theta_temperature;
  if (!call.solver.solution_size().fixed) call.settings.noise_mean = moments(density).mean;
  call.draw_theta(rng);
  const bool bad_row = one_in(rng, 10) && call.solver.swaps() == Swaps::kEach && call.n() > 0;
  if (bad_row) call.theta[rng() % call.theta.size()] = static_cast<T>(NAN);
  call.draw_dy(rng);
  if (one_in(rng, 3)) {
    call.mask.resize(static_cast<size_t>(call.count * call.n()));
    for (bool& allowed : call.mask) allowed = !one_in(rng, 6);
  }
  Case<T> solved = call;  // z of every sample, for any output of the layer
  solved.settings.output = Output::kSamples;
  solved.dy.assign(static_cast<size_t>(call.count * call.samples() * call.n()), T(0));
  const Outcome<T> expected = plain_thresholds(call, run_fused(solved).z);
  const Isa before = isa();
  for (const Isa set : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
    if (!processor_has(set)) continue;
    use_isa(set);
    const Outcome<T> got = run_fused(call);
    use_isa(before);
    const std::string where = "seed " + std::to_string(seed) + " solver " +
                              std::string(call.solver.name()) + " n=" + std::to_string(call.n()) +
                              " on " + std::string(name(set));
    ASSERT_EQ(got.dtheta.size(), expected.dtheta.size());
    for (size_t i = 0; i < got.dtheta.size(); ++i) {
      ASSERT_TRUE(got.dtheta[i] == expected.dtheta[i] ||
                  (std::isnan(got.dtheta[i]) && std::isnan(expected.dtheta[i])))
          << where << " entry " << i << ": " << got.dtheta[i] << " instead of "
          << expected.dtheta[i];
    }
    ASSERT_EQ(got.report.capped_share, expected.report.capped_share) << where;
    if (!std::isnan(expected.report.capped_mass)) {
      ASSERT_EQ(got.report.capped_mass, expected.report.capped_mass) << where;
    }
  }
}

TEST(ThresholdsTest, EveryInstructionSetGivesTheBitsOfThePlainFormula) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    expect_the_plain_gradient<float>(seed);
    expect_the_plain_gradient<double>(seed);
    if (HasFatalFailure()) return;
  }
}

// A solver of somebody else's, without thresholds.
struct Pairs {
  static constexpr std::string_view kName = "pairs";
  static constexpr Sense kSense = Sense::kMax;
  int64_t size() const { return 4; }
  double work_ns() const { return 1.0; }
  SolutionSize solution_size() const { return {.fixed = true, .ones = 2}; }
  void validate() const {}
};
void solve_rows(const Pairs&, const Rows<float>&) {}
void solve_rows(const Pairs&, const Rows<double>&) {}

TEST(ThresholdsTest, ASolverThatIsNotOnTheListIsRefusedByName) {
  EXPECT_EQ(entries_in_solution(Solver(Argmax{.n = 5})), 1);
  EXPECT_EQ(entries_in_solution(Solver(TopK{.n = 5, .k = 3})), 3);
  EXPECT_EQ(entries_in_solution(Solver(Bernoulli{.n = 5})), -1);
  EXPECT_EQ(entries_in_solution(Solver(SpanningTree{.vertices = 4})), 3);
  EXPECT_EQ(entries_in_solution(
                Solver(SpanningTree{.vertices = 4, .layout = SpanningTree::Layout::kDirected})),
            6);
  for (const Solver& other : {Solver(GridPath{.height = 3, .width = 3}), Solver(Pairs{})}) {
    try {
      entries_in_solution(other);
      FAIL() << "not refused: " << other.name();
    } catch (const std::invalid_argument& error) {
      const std::string name(other.name());
      EXPECT_NE(std::string(error.what()).find("but got " + name), std::string::npos)
          << error.what();
    }
  }
}

TEST(ThresholdsTest, MisuseIsRefused) {
  PassSettings settings{.noise = {.kind = NoiseKind::kGumbel},
                        .difference = Difference::kThresholds,
                        .target = ThresholdTarget{}};
  settings.validate();
  EXPECT_THROW(
      threshold_backward<float>(settings, GridPath{.height = 3, .width = 3}, {}, {}, sequential()),
      std::invalid_argument);
  auto refused = [&](auto change) {
    PassSettings changed = settings;
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

// What forward keeps of the noise tells backward as much as the noise.
TEST(ThresholdsTest, KeptRivalsGiveTheSameBitsAsTheNoise) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    Case<float> call;
    call.solver = draw_threshold_solver(static_cast<int>(rng() % 3), uniform(rng, 1, 60), rng);
    call.count = uniform(rng, 1, 6);
    use_noise(NoiseKind::kGumbel, call.settings);
    call.settings.samples = uniform(rng, 1, 4);
    call.settings.difference = Difference::kThresholds;
    call.settings.target = ThresholdTarget{};
    call.draw_theta(rng);
    call.draw_dy(rng);
    if (one_in(rng, 3)) {
      call.mask.resize(call.theta.size());
      for (bool& allowed : call.mask) allowed = !one_in(rng, 6);
    }
    const auto rows = static_cast<size_t>(call.count * call.samples());
    std::vector<uint8_t> bits(rows * static_cast<size_t>(bytes_per_row(call.n())));
    std::vector<std::byte> rivals(rows * sizeof(KeptRivals) + 1);
    std::vector<float> z(rows * static_cast<size_t>(call.n()));
    forward(call.settings, call.solver, call.examples(),
            ForwardPass<float>{.z = z.data(), .bits = bits.data(), .rivals = rivals.data() + 1},
            sequential());
    const auto gradient = [&](const std::byte* kept) {
      std::vector<float> dtheta(call.theta.size());
      backward(
          call.settings, call.solver, call.examples(),
          BackwardPass<float>{
              .dy = call.dy.data(), .bits = bits.data(), .rivals = kept, .dtheta = dtheta.data()},
          sequential());
      std::vector<uint32_t> words(dtheta.size());
      std::memcpy(words.data(), dtheta.data(), dtheta.size() * sizeof(float));
      return words;
    };
    ASSERT_EQ(gradient(rivals.data() + 1), gradient(nullptr)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace aimle::cases
