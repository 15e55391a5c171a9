#include "aimle/estimate/step_size.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/estimate/cases.h"

namespace aimle::cases {
namespace {

using Scope = AdaptiveTarget::Scope;
using Scale = AdaptiveTarget::Scale;

/// What `step` computed for one example.
struct Steps {
  std::vector<double> sample;
  double shared;
  double reported;
  std::vector<uint8_t> counted;
};

template <class T>
std::vector<Steps> steps_of(const Case<T>& call) {
  const auto size = static_cast<size_t>(call.count * call.samples() * call.n());
  const auto rows = static_cast<size_t>(call.rows());
  std::vector<T> left(size), right(size);
  std::vector<double> lambda(static_cast<size_t>(call.count) * (rows + 2));
  std::vector<uint8_t> counted(static_cast<size_t>(call.count) * rows);
  step(call.settings, sense_of(call.solver), call.examples(), call.dy.data(), call.alpha,
       left.data(), right.data(), lambda.data(), counted.data(), sequential());
  std::vector<Steps> result;
  for (size_t b = 0; b < static_cast<size_t>(call.count); ++b) {
    const double* row = lambda.data() + b * (rows + 2);
    result.push_back({.sample = {row, row + rows},
                      .shared = row[rows],
                      .reported = row[rows + 1],
                      .counted = {counted.begin() + static_cast<int64_t>(b * rows),
                                  counted.begin() + static_cast<int64_t>((b + 1) * rows)}});
  }
  return result;
}

/// Finite, non-zero theta and dy, argmax of n.
template <class T>
Case<T> plain_case(Rng& rng, int64_t count, int64_t samples, int64_t n, AdaptiveTarget target) {
  Case<T> call{.solver = Argmax{.n = n}, .count = count, .alpha = 0.75};
  call.settings.samples = samples;
  use_noise(NoiseKind::kGumbel, call.settings);
  call.settings.target = target;
  call.theta.resize(static_cast<size_t>(count * n));
  call.dy.resize(static_cast<size_t>(count * samples * n));
  for (T& x : call.theta) x = static_cast<T>(normal(rng));
  for (T& x : call.dy) x = static_cast<T>(normal(rng));
  return call;
}

/// sum of squares of `count` values in extended precision.
template <class T>
long double squares(const T* values, int64_t count) {
  long double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<long double>(values[i]) * values[i];
  return sum;
}

template <class T>
class StepSizeTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(StepSizeTest, Types);

TYPED_TEST(StepSizeTest, FollowsTheFormulaOfEveryScopeAndScale) {
  Rng rng(1);
  for (const Scope scope : {Scope::kExample, Scope::kSample, Scope::kBatch}) {
    for (const Scale scale : {Scale::kTheta, Scale::kNoise}) {
      for (const int64_t n : {1, 3, 31, 32, 33, 100}) {
        const int64_t count = 4, samples = 5;
        auto call = plain_case<TypeParam>(rng, count, samples, n, {.scope = scope, .scale = scale});
        call.settings.target_temperature = 0.5;
        const long double sigma = 0.5L * std::acos(-1.0L) / std::sqrt(6.0L);
        auto size = [&](int64_t b) {
          return scale == Scale::kTheta ? std::sqrt(squares(call.theta.data() + b * n, n))
                                        : sigma * std::sqrt(static_cast<long double>(n));
        };
        auto ratio = [&](int64_t b, int64_t s) {
          return size(b) / std::sqrt(squares(call.dy.data() + (b * samples + s) * n, n));
        };
        long double whole = 0;
        for (int64_t b = 0; b < count; ++b) whole += size(b) * size(b) * samples;
        whole = std::sqrt(whole / squares(call.dy.data(), count * samples * n));
        const std::vector<Steps> steps = steps_of(call);
        for (int64_t b = 0; b < count; ++b) {
          long double mean = 0;
          for (int64_t s = 0; s < samples; ++s) mean += ratio(b, s) / samples;
          const Steps& got = steps[static_cast<size_t>(b)];
          for (int64_t s = 0; s < samples; ++s) {
            const long double expected = 0.75L * (scope == Scope::kExample  ? mean
                                                  : scope == Scope::kSample ? ratio(b, s)
                                                                            : whole);
            const double lambda = got.sample[static_cast<size_t>(s)];
            EXPECT_NEAR(lambda, static_cast<double>(expected), 1e-13 * lambda)
                << "scope " << static_cast<int>(scope) << ", n=" << n;
            EXPECT_EQ(got.counted[static_cast<size_t>(s)], 1);
          }
          EXPECT_NEAR(got.reported,
                      static_cast<double>(0.75L * (scope == Scope::kBatch ? whole : mean)),
                      1e-13 * got.reported);
        }
      }
    }
  }
}

TYPED_TEST(StepSizeTest, ATinyGradientDoesNotEnterTheMean) {
  Rng rng(2);
  auto call = plain_case<TypeParam>(rng, 1, 3, 4, {});
  call.theta = {1, 0, 0, 0};
  // ||d|| = 1, 1e-6 (just in) and below 1e-6 (out).
  call.dy = {1, 0, 0, 0, 0, TypeParam(1.01e-6), 0, 0, 0, 0, TypeParam(0.99e-6), 0};
  const Steps steps = steps_of(call)[0];
  const double in = 1.0 / static_cast<double>(TypeParam(1.01e-6));
  EXPECT_NEAR(steps.shared, 0.75 * (1.0 + in) / 2.0, 1e-6);
  EXPECT_EQ(steps.counted, (std::vector<uint8_t>{1, 1, 1}));
  for (const double lambda : steps.sample) EXPECT_EQ(lambda, steps.shared);
}

TYPED_TEST(StepSizeTest, ZeroAndNonFiniteGradientsDoNotCount) {
  Rng rng(3);
  const auto nan = std::numeric_limits<TypeParam>::quiet_NaN();
  const auto inf = std::numeric_limits<TypeParam>::infinity();
  for (const Scope scope : {Scope::kExample, Scope::kSample, Scope::kBatch}) {
    auto call = plain_case<TypeParam>(rng, 2, 4, 2, {.scope = scope});
    call.theta = {3, 4, 0, 0};
    call.dy = {2, 0, 0, 0, nan, 1, 1,   -inf,  //
               1, 0, 0, 0, 0,   1, nan, 1};
    const std::vector<Steps> steps = steps_of(call);
    EXPECT_EQ(steps[0].counted, (std::vector<uint8_t>{1, 0, 0, 0}));
    EXPECT_EQ(steps[1].counted, (std::vector<uint8_t>{1, 0, 1, 0}));
    EXPECT_GT(steps[0].sample[0], 0.0);
    EXPECT_TRUE(std::isfinite(steps[0].sample[1]));
    EXPECT_TRUE(std::isnan(steps[0].sample[2]));
    EXPECT_TRUE(std::isnan(steps[0].sample[3]));
    if (scope != Scope::kBatch) {
      EXPECT_EQ(steps[0].reported, 0.75 * 5.0 / 2.0);
      EXPECT_EQ(steps[0].sample[0], 0.75 * 5.0 / 2.0);
      // theta = 0: the paper's ratio is zero, and so is the step.
      EXPECT_EQ(steps[1].reported, 0.0);
      EXPECT_EQ(steps[1].sample[0], 0.0);
    } else {
      EXPECT_DOUBLE_EQ(steps[0].shared, 0.75 * std::sqrt(4 * 25.0 / 6.0));
    }
  }
}

TYPED_TEST(StepSizeTest, ABadExampleDoesNotSpoilTheBatchesStep) {
  Rng rng(4);
  auto call = plain_case<TypeParam>(rng, 3, 2, 4, {.scope = Scope::kBatch});
  call.theta[5] = std::numeric_limits<TypeParam>::quiet_NaN();
  const std::vector<Steps> steps = steps_of(call);
  EXPECT_TRUE(std::isfinite(steps[0].shared));
  EXPECT_GT(steps[0].shared, 0.0);
  EXPECT_EQ(steps[1].counted, (std::vector<uint8_t>{0, 0}));
  const long double theta = squares(call.theta.data(), 4) + squares(call.theta.data() + 8, 4);
  const long double dy = squares(call.dy.data(), 8) + squares(call.dy.data() + 16, 8);
  EXPECT_NEAR(steps[0].shared, static_cast<double>(0.75L * std::sqrt(2 * theta / dy)), 1e-12);
}

TYPED_TEST(StepSizeTest, NormsRunOverFreeEntries) {
  Rng rng(5);
  const auto inf = std::numeric_limits<TypeParam>::infinity();
  const auto nan = std::numeric_limits<TypeParam>::quiet_NaN();
  for (const Scale scale : {Scale::kTheta, Scale::kNoise}) {
    auto call = plain_case<TypeParam>(rng, 1, 1, 5, {.scale = scale});
    call.theta = {3, nan, 4, -inf, 100};
    call.dy = {0, nan, 2, 7, inf};
    call.mask = std::valarray<bool>{true, false, true, true, false};
    const Steps steps = steps_of(call)[0];
    const double sigma = std::acos(-1.0) / std::sqrt(6.0);
    EXPECT_DOUBLE_EQ(steps.shared,
                     0.75 * (scale == Scale::kTheta ? 5.0 : sigma * std::sqrt(2.0)) / 2.0);
    EXPECT_EQ(steps.counted, (std::vector<uint8_t>{1}));
  }
}

TYPED_TEST(StepSizeTest, AFixedTargetIsTheSameForEverybody) {
  Rng rng(6);
  auto call = plain_case<TypeParam>(rng, 2, 2, 3, {});
  call.settings.target = FixedTarget{.lambda = 2.5};
  for (const Steps& steps : steps_of(call)) {
    EXPECT_EQ(steps.sample, (std::vector<double>{2.5, 2.5}));
    EXPECT_EQ(steps.shared, 2.5);
    EXPECT_EQ(steps.reported, 2.5);
  }
}

TYPED_TEST(StepSizeTest, TheStepOfAMeanUsesItsOneGradient) {
  Rng rng(7);
  auto call = plain_case<TypeParam>(rng, 2, 9, 3, {});
  call.settings.output = Output::kMean;
  call.theta = {3, 4, 0, 6, 8, 0};
  call.dy = {1, 0, 0, 0, 2, 0};
  const std::vector<Steps> steps = steps_of(call);
  EXPECT_EQ(steps[0].sample, (std::vector<double>{0.75 * 5.0}));
  EXPECT_EQ(steps[1].sample, (std::vector<double>{0.75 * 10.0 / 2.0}));
}

}  // namespace
}  // namespace aimle::cases
