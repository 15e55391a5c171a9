#include "aimle/noise/sum_of_gamma.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <thread>

#include "aimle/noise/gamma_mixture.h"
#include "aimle/noise/quantile_table.h"
#include "tests/noise/contour_integral.h"
#include "tests/noise/words.h"

namespace aimle {
namespace {

constexpr double kTolerance = 5e-7;  // times 1 + |x|

/// The table as a function, and the shift between the noise x and the sum y of Gamma variables.
struct Sampler {
  explicit Sampler(const SumOfGamma& settings)
      : table(quantile_table(settings)),
        shift(std::log(static_cast<double>(settings.iterations)) /
              static_cast<double>(settings.k)) {}

  double operator()(uint32_t word) const { return look_up_quantile(table->data(), word); }

  std::shared_ptr<const std::vector<float>> table;
  double shift;
};

using TailProbability = std::function<double(double)>;

/// Checks that the exact quantile is within the tolerance of the sampled value, by monotonicity.
/// `lower` and `upper` are P(Y <= y) and P(Y > y), which may be wrong by 1e-8 relatively.
void expect_close_to_quantile(const Sampler& sampler, const std::vector<uint32_t>& words,
                              const TailProbability& lower, const TailProbability& upper) {
  for (const uint32_t word : words) {
    const double x = sampler(word), p = exact_tail(word);
    const double slack = kTolerance * (1 + std::abs(x));
    const double left = x + sampler.shift - slack, right = x + sampler.shift + slack;
    ASSERT_GT(right, 0) << "word " << std::hex << word;
    // In the lower tail probability rises with y, in the upper tail it falls.
    const bool is_up = is_upper(word);
    const TailProbability& tail = is_up ? upper : lower;
    const double at_left = left > 0 ? tail(left) : (is_up ? 1 : 0), at_right = tail(right);
    ASSERT_LE(is_up ? at_right : at_left, p * (1 + 1e-8))
        << "x=" << x << " word " << std::hex << word;
    ASSERT_GE(is_up ? at_left : at_right, p * (1 - 1e-8))
        << "x=" << x << " word " << std::hex << word;
  }
}

std::vector<SumOfGamma> settings_grid() {
  std::vector<SumOfGamma> grid;
  for (const int64_t k : {1, 2, 3, 5, 10, 39, 100, 300, 1000}) {
    for (const int64_t iterations : {1, 2, 3, 10, 30, 100}) {
      grid.push_back({.k = k, .iterations = iterations});
    }
  }
  grid.push_back({.k = 1, .iterations = 1000});
  grid.push_back({.k = 1'000'000, .iterations = 10});
  return grid;
}

std::string describe(const SumOfGamma& settings) {
  return "k=" + std::to_string(settings.k) + " iterations=" + std::to_string(settings.iterations);
}

TEST(GammaMixture, MatchesTheContourIntegral) {
  for (const SumOfGamma& settings : settings_grid()) {
    if (settings.iterations > 100) continue;
    SCOPED_TRACE(describe(settings));
    const GammaMixture mixture(settings.k, settings.iterations);
    const ContourIntegral oracle(settings.k, settings.iterations);
    const double step = settings.iterations >= 30 ? 3.1 : 0.5;
    for (double log_y = -12; log_y < 3.3; log_y += step) {
      const double y = std::exp(log_y);
      const auto lower = mixture.lower(y), upper = mixture.upper(y);
      const double exact_lower = oracle.lower(y), exact_upper = oracle.upper(y);
      if (exact_lower > 1e-12) {
        EXPECT_NEAR(lower.probability / exact_lower, 1, 1e-9) << y;
      }
      if (exact_upper > 1e-12) {
        EXPECT_NEAR(upper.probability / exact_upper, 1, 1e-9) << y;
      }
      if (exact_lower > 1e-12 && exact_upper > 1e-12) {
        const double density = oracle.density(y);
        EXPECT_NEAR(lower.density / density, 1, 1e-9) << y;
        EXPECT_NEAR(upper.density / density, 1, 1e-9) << y;
      }
    }
  }
}

TEST(SumOfGamma, MatchesTheContourIntegralsQuantile) {
  for (const SumOfGamma& settings : settings_grid()) {
    if (settings.iterations > 100) continue;
    SCOPED_TRACE(describe(settings));
    const ContourIntegral oracle(settings.k, settings.iterations);
    std::vector<uint32_t> words = test_words(3, uint64_t{1} << 26);
    std::shuffle(words.begin(), words.end(), std::mt19937(7));
    words.resize(settings.iterations >= 30 ? 8 : 60);
    for (const uint32_t edge : {0u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) words.push_back(edge);
    expect_close_to_quantile(
        Sampler(settings), words, [&](double y) { return oracle.lower(y); },
        [&](double y) { return oracle.upper(y); });
  }
}

TEST(SumOfGamma, MatchesTheMixturesQuantileOnADenseGrid) {
  for (const SumOfGamma& settings : settings_grid()) {
    SCOPED_TRACE(describe(settings));
    const GammaMixture mixture(settings.k, settings.iterations);
    expect_close_to_quantile(
        Sampler(settings), test_words(settings.iterations >= 100 ? 20 : 200, 0),
        [&](double y) { return mixture.lower(y).probability; },
        [&](double y) { return mixture.upper(y).probability; });
  }
}

// The sum of Exp(i), i = 1..s, is the largest of s exponential variables.
TEST(SumOfGamma, MatchesTheClosedFormForOneOfK) {
  for (const int64_t iterations : {1, 2, 7, 10, 100, 1000}) {
    const Sampler sampler({.k = 1, .iterations = iterations});
    const auto s = static_cast<double>(iterations);
    for (const uint32_t word : test_words(2000, 100'003)) {
      const double p = exact_tail(word);
      const double log_root = (is_upper(word) ? std::log1p(-p) : std::log(p)) / s;
      const double x = -std::log(-std::expm1(log_root)) - sampler.shift;
      ASSERT_NEAR(sampler(word), x, kTolerance * (1 + std::abs(x)))
          << "iterations=" << iterations << " word " << std::hex << word;
    }
  }
}

// Gamma(1/2, 1) is half the square of a normal variable.
TEST(SumOfGamma, MatchesTheClosedFormForHalfAShape) {
  expect_close_to_quantile(
      Sampler({.k = 2, .iterations = 1}), test_words(2000, 100'003),
      [](double y) { return std::erf(std::sqrt(y)); },
      [](double y) { return std::erfc(std::sqrt(y)); });
}

/// Largest distance between two empirical distribution functions.
double kolmogorov_smirnov(std::vector<double> a, std::vector<double> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  double distance = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const double value = std::min(a[i], b[j]);
    while (i < a.size() && a[i] <= value) ++i;
    while (j < b.size() && b[j] <= value) ++j;
    distance = std::max(distance, std::abs(static_cast<double>(i) / static_cast<double>(a.size()) -
                                           static_cast<double>(j) / static_cast<double>(b.size())));
  }
  return distance;
}

TEST(SumOfGamma, AgreesWithDirectSampling) {
  constexpr size_t kCount = 40'000;
  for (const SumOfGamma& settings : settings_grid()) {
    if (settings.k > 10 || settings.iterations > 30) continue;
    SCOPED_TRACE(describe(settings));
    const Sampler sampler(settings);
    const auto k = static_cast<double>(settings.k);
    std::mt19937_64 rng(11);
    std::vector<double> direct(kCount), table(kCount);
    for (double& x : direct) {
      double sum = 0;
      for (int64_t i = 1; i <= settings.iterations; ++i) {
        sum += std::gamma_distribution<double>(1 / k, k / static_cast<double>(i))(rng);
      }
      x = sum / k;
    }
    for (double& x : table) x = sampler(static_cast<uint32_t>(rng() >> 32)) + sampler.shift;
    // Much of the mass of large k lies closer to zero than float32 noise can tell.
    for (double& x : direct) x = std::round(x * 1e4);
    for (double& x : table) x = std::round(x * 1e4);
    // P(distance > t sqrt(2 / count)) < 2 exp(-2 t^2) = 1e-6
    const double t = std::sqrt(std::log(2e6) / 2);
    EXPECT_LT(kolmogorov_smirnov(direct, table), t * std::sqrt(2.0 / kCount));
  }
}

TEST(SumOfGamma, TheQuantileRises) {
  for (const SumOfGamma& settings : settings_grid()) {
    const Sampler sampler(settings);
    std::vector<uint32_t> words = test_words(50, 0);
    const auto position = [](uint32_t word) { return is_upper(word) ? ~word ^ 0x80000000u : word; };
    std::sort(words.begin(), words.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(is_upper(a), position(a)) < std::pair(is_upper(b), position(b));
    });
    for (size_t i = 1; i < words.size(); ++i) {
      ASSERT_GE(sampler(words[i]), sampler(words[i - 1]) - kTolerance)
          << describe(settings) << " words " << std::hex << words[i - 1] << ", " << words[i];
    }
  }
}

TEST(SumOfGamma, GoldenValues) {
  const std::pair<uint32_t, float> golden[] = {
      {0x00000000u, -0.23025851f},   {0x00001234u, -0.230258271f},  {0x12345678u, -0.213839591f},
      {0x40000000u, -0.164679796f},  {0x7fffffffu, -0.0644378439f}, {0x80000000u, 17.9773178f},
      {0x80001234u, 9.38767242f},    {0x9abcdef0u, 0.442854851f},   {0xdeadbeefu, 0.0170303732f},
      {0xffffffffu, -0.0644378439f},
  };
  // The table is made with libm's logarithm, whose last bit may differ between machines.
  const Sampler sampler({.k = 10, .iterations = 10});
  for (const auto& [word, x] : golden) {
    EXPECT_NEAR(sampler(word), x, 1e-7 * (1 + std::abs(x))) << std::hex << word;
  }
}

TEST(QuantileTable, EveryWordFindsItsCell) {
  for (const uint32_t word : test_words(1000, 100'003)) {
    const QuantileCell cell = quantile_cell(word);
    ASSERT_LT(cell.index, 2u * kQuantileCellsPerTail) << std::hex << word;
    ASSERT_EQ(cell.index >= kQuantileCellsPerTail, is_upper(word)) << std::hex << word;
    // What the cell and the coordinate say about f = w + 1/2, up to its rounding to float.
    const auto number = static_cast<int>(cell.index) % kQuantileCellsPerTail;
    const double mantissa =
        1 + (number % kQuantileCellsPerOctave + 0.5 + cell.t) / kQuantileCellsPerOctave;
    const double f = std::ldexp(mantissa, number / kQuantileCellsPerOctave - 1);
    ASSERT_NEAR(f * 0x1p-32 / exact_tail(word), 1, 0x1p-23) << std::hex << word;
  }
}

TEST(QuantileTable, EvaluatesTheCubicOfTheCell) {
  std::vector<float> table(kQuantileTableSize);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i % 1009) - 500.0f;
  const std::pair<uint32_t, uint32_t> golden[] = {
      {0x00000000u, 0xc39c7000u}, {0x00001234u, 0xc2605a03u}, {0x12345678u, 0x439686f3u},
      {0x40000000u, 0x43999000u}, {0x7fffffffu, 0xc397c000u}, {0x80000000u, 0xc3968000u},
      {0x80001234u, 0xc22b5311u}, {0x9abcdef0u, 0x43ce5249u}, {0xdeadbeefu, 0xc43432b1u},
      {0xffffffffu, 0xc391d000u},
  };
  for (const auto& [word, bits] : golden) {
    EXPECT_EQ(float_bits(look_up_quantile(table.data(), word)), bits) << std::hex << word;
  }
}

TEST(SumOfGamma, TablesAreCachedAndSharedBetweenThreads) {
  std::vector<std::shared_ptr<const std::vector<float>>> tables(8);
  std::vector<std::thread> threads;
  for (auto& table : tables) {
    threads.emplace_back([&table] { table = quantile_table({.k = 17, .iterations = 9}); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& table : tables) EXPECT_EQ(table, tables[0]);
  EXPECT_EQ(tables[0]->size(), static_cast<size_t>(kQuantileTableSize));
  EXPECT_NE(tables[0], quantile_table({.k = 9, .iterations = 17}));
}

TEST(SumOfGamma, RefusesSettingsOutOfRange) {
  const auto message = [](int64_t k, int64_t iterations) -> std::string {
    try {
      quantile_table({.k = k, .iterations = iterations});
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message(0, 10), "[aimle::sum_of_gamma] expected 1 <= k <= 1000000 but got k=0");
  EXPECT_EQ(message(-3, 10), "[aimle::sum_of_gamma] expected 1 <= k <= 1000000 but got k=-3");
  EXPECT_EQ(message(1'000'001, 10),
            "[aimle::sum_of_gamma] expected 1 <= k <= 1000000 but got k=1000001");
  EXPECT_EQ(message(10, 0),
            "[aimle::sum_of_gamma] expected 1 <= iterations <= 1000 but got iterations=0");
  EXPECT_EQ(message(10, 1001),
            "[aimle::sum_of_gamma] expected 1 <= iterations <= 1000 but got iterations=1001");
}

}  // namespace
}  // namespace aimle
