// Properties of every noise, for any distribution: rows as specified, the same bits
// for any split, thread count and instruction set, the right distribution, and clear errors.
#include "aimle/noise/noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <random>
#include <vector>

#include "aimle/base/isa.h"
#include "aimle/noise/fill_rows.h"
#include "aimle/noise/gamma_mixture.h"
#include "aimle/noise/gumbel.h"
#include "aimle/noise/logistic.h"
#include "aimle/noise/normal.h"
#include "aimle/noise/quantile_table.h"
#include "aimle/noise/sum_of_gamma.h"
#include "tests/noise/words.h"

namespace aimle {
namespace {

constexpr NoiseKind kKinds[] = {NoiseKind::kNone, NoiseKind::kGumbel, NoiseKind::kNormal,
                                NoiseKind::kLogistic, NoiseKind::kSumOfGamma};
constexpr SumOfGamma kSettings{.k = 10, .iterations = 10};
constexpr Key kKey{.seed = 0x0123456789abcdef, .stream = 0xfedcba9876543210};

NoiseSource source_of(NoiseKind kind) {
  static const auto table = quantile_table(kSettings);
  return {.kind = kind, .table = kind == NoiseKind::kSumOfGamma ? table->data() : nullptr};
}

float noise_of(const NoiseSource& source, uint32_t word) {
  switch (source.kind) {
    case NoiseKind::kNone:
      return 0;
    case NoiseKind::kGumbel:
      return gumbel(word);
    case NoiseKind::kNormal:
      return normal(word);
    case NoiseKind::kLogistic:
      return logistic(word);
    case NoiseKind::kSumOfGamma:
      return look_up_quantile(source.table, word);
  }
  return NAN;
}

/// The contract, element by element.
std::vector<float> expected_rows(const NoiseSource& source, Key key, const NoiseRows& rows) {
  std::vector<float> out;
  for (int64_t row = rows.first; row < rows.first + rows.count; ++row) {
    const auto b = static_cast<uint32_t>(row / rows.samples);
    const auto s = static_cast<uint32_t>(row % rows.samples);
    for (int64_t j = 0; j < rows.n; ++j) {
      const PhiloxWords words = noise_words(key, b, s, static_cast<uint32_t>(j >> 2));
      out.push_back(noise_of(source, words.w[j & 3]));
    }
  }
  return out;
}

/// What fill_rows writes, with a guard behind it.
std::vector<float> filled_rows(const NoiseSource& source, Key key, const NoiseRows& rows) {
  constexpr float kGuard = 12345.0f;
  const auto size = static_cast<size_t>(rows.count * rows.n);
  std::vector<float> out(size + 40, kGuard);
  fill_rows(source, key, rows, out.data());
  for (size_t i = size; i < out.size(); ++i) EXPECT_EQ(out[i], kGuard) << "wrote behind the rows";
  out.resize(size);
  return out;
}

uint32_t float_bits_of(float value) { return float_bits(value); }

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(a, b, {}, float_bits_of, float_bits_of);
}

class NoiseRowsTest : public testing::TestWithParam<std::tuple<NoiseKind, Isa>> {
 protected:
  void SetUp() override {
    if (!processor_has(std::get<1>(GetParam()))) {
      GTEST_SKIP() << "this processor has no " << name(std::get<1>(GetParam()));
    }
    use_isa(std::get<1>(GetParam()));
  }
  void TearDown() override { use_isa(before_); }

  NoiseSource source() const { return source_of(std::get<0>(GetParam())); }
  NoiseKind kind() const { return std::get<0>(GetParam()); }

 private:
  Isa before_ = isa();
};

INSTANTIATE_TEST_SUITE_P(, NoiseRowsTest,
                         testing::Combine(testing::ValuesIn(kKinds),
                                          testing::Values(Isa::kPortable, Isa::kAvx2,
                                                          Isa::kAvx512)),
                         [](const auto& info) {
                           return std::string(name(std::get<0>(info.param))) + "_" +
                                  std::string(name(std::get<1>(info.param)));
                         });

TEST_P(NoiseRowsTest, RowsFollowTheContract) {
  std::mt19937_64 rng(3);
  const auto below = [&](int64_t end) {
    return static_cast<int64_t>(rng() % static_cast<uint64_t>(end));
  };
  for (int trial = 0; trial < 500; ++trial) {
    NoiseRows rows{
        .first = below(1000), .count = below(12), .samples = 1 + below(12), .n = below(70)};
    if (trial % 50 == 0) rows.n = 900 + below(300);
    if (trial % 10 == 0) rows.count = 100 + below(60);
    if (trial % 7 == 0) rows.first += (int64_t{1} << 32) - 1100;
    const Key key{rng(), rng()};
    ASSERT_TRUE(same_bits(filled_rows(source(), key, rows), expected_rows(source(), key, rows)))
        << "trial=" << trial << " first=" << rows.first << " count=" << rows.count
        << " samples=" << rows.samples << " n=" << rows.n;
  }
}

TEST_P(NoiseRowsTest, CountersGoToTheirLimits) {
  constexpr int64_t kInstances = int64_t{1} << 32, kSamples = int64_t{1} << 30;
  for (const NoiseRows& rows :
       {NoiseRows{.first = kInstances - 9, .count = 9, .samples = 1, .n = 5},
        NoiseRows{.first = 3 * kInstances - 9, .count = 9, .samples = 3, .n = 5},
        NoiseRows{.first = kSamples - 5, .count = 9, .samples = kSamples, .n = 3},
        NoiseRows{.first = 5 * kSamples - 5, .count = 9, .samples = kSamples - 1, .n = 1}}) {
    ASSERT_TRUE(same_bits(filled_rows(source(), kKey, rows), expected_rows(source(), kKey, rows)));
  }
}

TEST_P(NoiseRowsTest, TheLengthOfARowDoesNotMatter) {
  const std::vector<float> longest =
      filled_rows(source(), kKey, {.first = 5, .count = 1, .samples = 3, .n = 3000});
  for (const int64_t n : {1, 2, 3, 4, 5, 10, 20, 31, 45, 90, 144, 350, 1023, 1024, 1025, 2999}) {
    const std::vector<float> row =
        filled_rows(source(), kKey, {.first = 5, .count = 1, .samples = 3, .n = n});
    ASSERT_TRUE(same_bits(row, {longest.begin(), longest.begin() + n})) << n;
  }
}

TEST_P(NoiseRowsTest, AnySplitAndAnyThreadCountGiveTheSameBits) {
  // Enough work for eight threads.
  const int64_t size = isa() >= Isa::kAvx2 ? 400'000 : 50'000;
  for (const int64_t n : {1, 10, 20, 45, 350}) {
    const NoiseRows rows{.first = 13, .count = size / n, .samples = 7, .n = n};
    const std::vector<float> whole = filled_rows(source(), kKey, rows);
    for (int threads = 1; threads <= 8; ++threads) {
      std::vector<float> out(whole.size());
      fill(source(), kKey, rows, out.data(), thread_pool(threads));
      ASSERT_TRUE(same_bits(out, whole)) << "n=" << n << " threads=" << threads;
    }
    for (const int64_t chunk : {1, 3, 16, 1000}) {
      std::vector<float> out(whole.size());
      for (int64_t row = 0; row < rows.count; row += chunk) {
        const int64_t count = std::min(chunk, rows.count - row);
        fill_rows(source(), kKey, {rows.first + row, count, rows.samples, n}, out.data() + row * n);
      }
      ASSERT_TRUE(same_bits(out, whole)) << "n=" << n << " chunk=" << chunk;
    }
  }
}

TEST_P(NoiseRowsTest, APartOfABatchHasTheNoiseOfTheWhole) {
  const NoiseRows whole{.count = 60, .samples = 3, .n = 13};
  const std::vector<float> expected = filled_rows(source(), kKey, whole);
  for (const int64_t first : {0, 1, 7, 19}) {
    Key key = kKey;
    key.first = static_cast<uint64_t>(first);
    const NoiseRows part{.count = whole.count - 3 * first, .samples = 3, .n = 13};
    const std::vector<float> wanted(expected.begin() + 3 * first * 13, expected.end());
    EXPECT_TRUE(same_bits(filled_rows(source(), key, part), wanted)) << "first=" << first;
    EXPECT_TRUE(same_bits(expected_rows(source(), key, part), wanted)) << "first=" << first;
  }
}

TEST_P(NoiseRowsTest, EmptyRowsWriteNothing) {
  float untouched = 7;
  fill_rows(source(), kKey, {.first = 0, .count = 0, .samples = 1, .n = 20}, &untouched);
  fill_rows(source(), kKey, {.first = 0, .count = 20, .samples = 1, .n = 0}, &untouched);
  EXPECT_EQ(untouched, 7);
  fill_rows(source(), kKey, {}, nullptr);
  fill(source(), kKey, {}, nullptr, sequential());
}

std::vector<float> big_sample(const NoiseSource& source) {
  return filled_rows(source, kKey, {.first = 0, .count = 1000, .samples = 10, .n = 400});
}

double excess_kurtosis(NoiseKind kind) {
  if (kind == NoiseKind::kGumbel) return 12.0 / 5;
  if (kind == NoiseKind::kLogistic) return 6.0 / 5;
  if (kind == NoiseKind::kNormal) return 0;
  double second = 0, fourth = 0;
  for (int64_t i = 1; i <= kSettings.iterations; ++i) {
    const auto x = static_cast<double>(i);
    second += 1 / (x * x);
    fourth += 1 / (x * x * x * x);
  }
  return 6 * static_cast<double>(kSettings.k) * fourth / (second * second);
}

TEST_P(NoiseRowsTest, HasTheMomentsItClaims) {
  const std::vector<float> sample = big_sample(source());
  const Moments exact = moments(kind(), kSettings.k, kSettings.iterations);
  if (kind() == NoiseKind::kNone) {
    EXPECT_EQ(std::count(sample.begin(), sample.end(), 0.0f), static_cast<int64_t>(sample.size()));
    EXPECT_EQ(exact.mean, 0);
    EXPECT_EQ(exact.stddev, 0);
    return;
  }
  const auto count = static_cast<double>(sample.size());
  double mean = 0, variance = 0;
  for (const float x : sample) mean += x / count;
  for (const float x : sample) variance += (x - exact.mean) * (x - exact.mean) / count;
  // Five standard errors.
  const double exact_variance = exact.stddev * exact.stddev;
  EXPECT_NEAR(mean, exact.mean, 5 * exact.stddev / std::sqrt(count));
  EXPECT_NEAR(variance, exact_variance,
              5 * exact_variance * std::sqrt((excess_kurtosis(kind()) + 2) / count));
}

double distribution(NoiseKind kind, double x) {
  switch (kind) {
    case NoiseKind::kGumbel:
      return std::exp(-std::exp(-x));
    case NoiseKind::kNormal:
      return 0.5 * std::erfc(-x / std::numbers::sqrt2);
    case NoiseKind::kLogistic:
      return 1 / (1 + std::exp(-x));
    case NoiseKind::kSumOfGamma: {
      static const GammaMixture mixture(kSettings.k, kSettings.iterations);
      const double y = x + std::log(static_cast<double>(kSettings.iterations)) /
                               static_cast<double>(kSettings.k);
      return y > 0 ? mixture.lower(y).probability : 0;
    }
    default:
      return NAN;
  }
}

TEST_P(NoiseRowsTest, HasTheDistributionItClaims) {
  if (kind() == NoiseKind::kNone) return;
  std::vector<float> sample = big_sample(source());
  std::sort(sample.begin(), sample.end());
  const auto count = static_cast<double>(sample.size());
  double distance = 0;
  for (size_t i = 0; i < sample.size(); i += 4) {
    const double exact = distribution(kind(), sample[i]);
    const auto rank = static_cast<double>(i);
    distance = std::max({distance, exact - rank / count, (rank + 1) / count - exact});
  }
  // P(distance > t / sqrt(count)) < 2 exp(-2 t^2) = 1e-6
  EXPECT_LT(distance, std::sqrt(std::log(2e6) / 2) / std::sqrt(count));
}

TEST_P(NoiseRowsTest, NeighboursAreUncorrelated) {
  if (kind() == NoiseKind::kNone) return;
  constexpr int64_t kRows = 1000, kSamples = 10, kN = 400;
  const std::vector<float> sample = big_sample(source());
  const Moments exact = moments(kind(), kSettings.k, kSettings.iterations);
  const auto standard = [&](int64_t row, int64_t j) {
    return (sample[static_cast<size_t>(row * kN + j)] - exact.mean) / exact.stddev;
  };
  // Neighbours in the block, in the row, in the samples of an instance, and in the instances.
  for (const auto& [row_step, j_step] :
       {std::pair<int64_t, int64_t>{0, 1}, {0, 4}, {1, 0}, {kSamples, 0}}) {
    double sum = 0, terms = 0;
    for (int64_t row = 0; row + row_step < kRows; ++row) {
      for (int64_t j = 0; j + j_step < kN; ++j) {
        sum += standard(row, j) * standard(row + row_step, j + j_step);
        ++terms;
      }
    }
    EXPECT_LT(std::abs(sum / terms), 5 / std::sqrt(terms)) << row_step << ", " << j_step;
  }
}

TEST_P(NoiseRowsTest, KeysAndStreamsDiffer) {
  if (kind() == NoiseKind::kNone) return;
  const NoiseRows rows{.first = 0, .count = 4, .samples = 2, .n = 20};
  const std::vector<float> a = filled_rows(source(), {.seed = 1, .stream = 1}, rows);
  EXPECT_FALSE(same_bits(a, filled_rows(source(), {.seed = 2, .stream = 1}, rows)));
  EXPECT_FALSE(same_bits(a, filled_rows(source(), {.seed = 1, .stream = 2}, rows)));
  EXPECT_FALSE(
      same_bits(a, filled_rows(source(), {.seed = 1 + (uint64_t{1} << 32), .stream = 1}, rows)));
}

TEST(NoiseChecks, MisuseNamesTheArgument) {
  const auto message = [](const NoiseSource& source, const NoiseRows& rows, bool room = true) {
    std::vector<float> out(64);
    std::string sequential_message, parallel_message;
    float* to = room ? out.data() : nullptr;
    try {
      fill_rows(source, kKey, rows, to);
    } catch (const std::invalid_argument& error) {
      sequential_message = error.what();
    }
    try {
      fill(source, kKey, rows, to, sequential());
    } catch (const std::invalid_argument& error) {
      parallel_message = error.what();
    }
    EXPECT_EQ(sequential_message, parallel_message);
    return sequential_message;
  };
  const NoiseSource ok{.kind = NoiseKind::kGumbel};
  constexpr int64_t kWord = int64_t{1} << 32;
  EXPECT_EQ(message(ok, {.first = 0, .count = 1, .samples = 0, .n = 4}),
            "[aimle::noise] expected 1 <= samples <= 2^30 but got samples=0");
  EXPECT_EQ(message(ok, {.first = 0, .count = 1, .samples = kWord, .n = 4}),
            "[aimle::noise] expected 1 <= samples <= 2^30 but got samples=4294967296");
  EXPECT_EQ(message(ok, {.first = 0, .count = 1, .samples = 1, .n = -4}),
            "[aimle::noise] expected 0 <= n <= 2^32 but got n=-4");
  EXPECT_EQ(message(ok, {.first = 0, .count = 1, .samples = 1, .n = kWord + 1}),
            "[aimle::noise] expected 0 <= n <= 2^32 but got n=4294967297");
  EXPECT_EQ(message(ok, {.first = -1, .count = 1, .samples = 1, .n = 4}),
            "[aimle::noise] expected first >= 0 and count >= 0 but got first=-1, count=1");
  EXPECT_EQ(message(ok, {.first = 0, .count = -1, .samples = 1, .n = 4}),
            "[aimle::noise] expected first >= 0 and count >= 0 but got first=0, count=-1");
  EXPECT_EQ(message(ok, {.first = kWord, .count = 1, .samples = 1, .n = 4}),
            "[aimle::noise] expected at most 2^32 instances but got first=4294967296, count=1, "
            "samples=1");
  EXPECT_EQ(message(ok, {.first = INT64_MAX, .count = 1, .samples = 1, .n = 4}),
            "[aimle::noise] expected at most 2^32 instances but got first=9223372036854775807, "
            "count=1, samples=1");
  EXPECT_EQ(
      message({.kind = NoiseKind::kSumOfGamma}, {.first = 0, .count = 1, .samples = 1, .n = 4}),
      "[aimle::noise] expected a quantile table for sum_of_gamma but got none");
  EXPECT_EQ(message(ok, {.first = 0, .count = 1, .samples = 1, .n = 4}, /*room=*/false),
            "[aimle::noise] expected memory for the rows but got a null pointer");
  EXPECT_THROW(moments(NoiseKind::kSumOfGamma, 0, 10), std::invalid_argument);
  EXPECT_THROW(moments(NoiseKind::kSumOfGamma, 10, 0), std::invalid_argument);
}

#if defined(__x86_64__)
class NoiseIsa : public testing::TestWithParam<Isa> {};

INSTANTIATE_TEST_SUITE_P(, NoiseIsa, testing::Values(Isa::kAvx2, Isa::kAvx512),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST_P(NoiseIsa, VectorsGiveTheBitsOfSingleWords) {
  if (!processor_has(GetParam())) GTEST_SKIP() << "this processor has no " << name(GetParam());
  const auto words_to_noise =
      GetParam() == Isa::kAvx2 ? avx2::words_to_noise : avx512::words_to_noise;
  std::vector<uint32_t> words = test_words(1000, 4001);
  words.resize((words.size() + 63) / 64 * 64);
  for (const NoiseKind kind : kKinds) {
    if (kind == NoiseKind::kNone) continue;
    for (size_t start = 0; start < words.size(); start += 64) {
      alignas(64) float values[64];
      std::memcpy(values, words.data() + start, sizeof(values));
      words_to_noise(source_of(kind), values, 64);
      for (size_t i = 0; i < 64; ++i) {
        ASSERT_EQ(float_bits(values[i]), float_bits(noise_of(source_of(kind), words[start + i])))
            << name(kind) << " word " << std::hex << words[start + i];
      }
    }
  }
}
#endif

}  // namespace
}  // namespace aimle
