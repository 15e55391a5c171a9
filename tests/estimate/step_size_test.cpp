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
  step(call.settings, {.sense = sense_of(call.solver), .size = call.solver.solution_size()},
       call.examples(), call.dy.data(), call.alpha, left.data(), right.data(), lambda.data(),
       counted.data(), sequential());
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

/// The paper's rule, over another scope or scale.
AdaptiveTarget paper(Scope scope = Scope::kExample, Scale scale = Scale::kTheta) {
  AdaptiveTarget target = AdaptiveTarget::paper();
  target.scope = scope;
  target.scale = scale;
  return target;
}

/// sum of squares of `count` values minus `mean` in extended precision.
template <class T>
long double squares(const T* values, int64_t count, long double mean = 0) {
  long double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const long double v = static_cast<long double>(values[i]) - mean;
    sum += v * v;
  }
  return sum;
}

/// The same minus the mean of the values.
template <class T>
long double centred_squares(const T* values, int64_t count) {
  long double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += values[i];
  return squares(values, count, sum / static_cast<long double>(count));
}

template <class T>
class StepSizeTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(StepSizeTest, Types);

TYPED_TEST(StepSizeTest, FollowsTheFormulaOfEveryScopeAndScale) {
  Rng rng(1);
  for (const Scope scope : {Scope::kExample, Scope::kSample, Scope::kBatch}) {
    for (const Scale scale : {Scale::kTheta, Scale::kNoise, Scale::kAuto}) {
      for (const int64_t n : {2, 3, 31, 32, 33, 100}) {
        const int64_t count = 4, samples = 5;
        auto call = plain_case<TypeParam>(rng, count, samples, n, paper(scope, scale));
        call.settings.target_temperature = 0.7;
        const long double sigma = 0.7L * std::acos(-1.0L) / std::sqrt(6.0L);
        // What the solution of an argmax sees: all but the mean.
        auto norm = [&](const TypeParam* x) {
          return std::sqrt(scale == Scale::kTheta ? squares(x, n) : centred_squares(x, n));
        };
        auto size_of = [&](long double theta, int64_t entries) {
          const long double noise = sigma * std::sqrt(static_cast<long double>(entries));
          return scale == Scale::kTheta   ? theta
                 : scale == Scale::kNoise ? noise
                                          : std::max(theta, noise);
        };
        auto theta_norm = [&](int64_t b) { return norm(call.theta.data() + b * n); };
        auto d_norm = [&](int64_t row) { return norm(call.dy.data() + row * n); };
        auto ratio = [&](int64_t b, int64_t s) {
          return size_of(theta_norm(b), n) / d_norm(b * samples + s);
        };
        long double theta = 0, gradient = 0;
        for (int64_t b = 0; b < count; ++b) theta += theta_norm(b) * theta_norm(b);
        for (int64_t r = 0; r < count * samples; ++r) gradient += d_norm(r) * d_norm(r);
        const long double all = size_of(std::sqrt(theta), count * n);
        const long double whole = std::sqrt(all * all * samples / gradient);
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
  auto call = plain_case<TypeParam>(rng, 1, 3, 4, paper());
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
    auto call = plain_case<TypeParam>(rng, 2, 4, 2, paper(scope));
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
  auto call = plain_case<TypeParam>(rng, 3, 2, 4, paper(Scope::kBatch));
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
    auto call = plain_case<TypeParam>(rng, 1, 1, 5, paper(Scope::kExample, scale));
    call.theta = {3, nan, 4, -inf, 100};
    call.dy = {0, nan, 2, 7, inf};
    if (scale == Scale::kNoise) call.dy[0] = 2 - 2 * std::sqrt(TypeParam(2));  // so is the norm
    call.mask = std::valarray<bool>{true, false, true, true, false};
    const Steps steps = steps_of(call)[0];
    const double sigma = std::acos(-1.0) / std::sqrt(6.0);
    EXPECT_NEAR(steps.shared, 0.75 * (scale == Scale::kTheta ? 5.0 : sigma * std::sqrt(2.0)) / 2.0,
                1e-6);
    EXPECT_EQ(steps.counted, (std::vector<uint8_t>{1}));
  }
}

TYPED_TEST(StepSizeTest, WhatNoSolutionCanSeeChangesNothing) {
  Rng rng(8);
  for (const Scale scale : {Scale::kNoise, Scale::kAuto}) {
    auto call = plain_case<TypeParam>(rng, 3, 2, 20, {.scale = scale});
    call.solver = TopK{.n = 20, .k = 5};
    // Multiples of 1/8, so that adding whole numbers is exact.
    for (auto* values : {&call.theta, &call.dy}) {
      for (TypeParam& x : *values) x = std::round(8 * x) / 8;
    }
    const std::vector<Steps> before = steps_of(call);
    for (TypeParam& x : call.theta) x += 10;
    for (TypeParam& x : call.dy) x += 7;
    const std::vector<Steps> after = steps_of(call);
    for (size_t b = 0; b < 3; ++b) EXPECT_NEAR(after[b].shared, before[b].shared, 1e-12);
    // A gradient along which no solution changes is none.
    for (TypeParam& x : call.dy) x = 3;
    for (const Steps& steps : steps_of(call)) {
      EXPECT_EQ(steps.counted, (std::vector<uint8_t>{0, 0}));
      EXPECT_TRUE(std::isnan(steps.reported));
    }
  }
}

TYPED_TEST(StepSizeTest, RowsWithoutAChoiceDoNotCount) {
  Rng rng(9);
  auto call = plain_case<TypeParam>(rng, 4, 1, 6, {});
  call.solver = TopK{.n = 6, .k = 3};
  call.k = {0, 3, 6, 2};
  call.mask = std::valarray<bool>(true, 24);
  for (size_t j = 2; j < 6; ++j) call.mask[18 + j] = false;  // 2 of 2
  const std::vector<Steps> steps = steps_of(call);
  for (size_t b = 0; b < 4; ++b) EXPECT_EQ(steps[b].counted[0], b == 1) << b;
  call.settings.target = AdaptiveTarget::paper();
  for (const Steps& step : steps_of(call)) EXPECT_EQ(step.counted[0], 1);
}

TYPED_TEST(StepSizeTest, AStepIsTakenFromZeroScores) {
  Rng rng(10);
  auto call = plain_case<TypeParam>(rng, 1, 1, 4, {});
  call.theta = {0, 0, 0, 0};
  call.dy = {1, -1, 0, 0};
  const double sigma = std::acos(-1.0) / std::sqrt(6.0);
  EXPECT_DOUBLE_EQ(steps_of(call)[0].shared, 0.75 * sigma * 2.0 / std::sqrt(2.0));
  call.settings.target_temperature = 0.0;  // nor is there a noise
  for (const Scale scale : {Scale::kNoise, Scale::kAuto}) {
    call.settings.target = AdaptiveTarget{.scale = scale};
    EXPECT_DOUBLE_EQ(steps_of(call)[0].shared, 0.75 * 2.0 / std::sqrt(2.0));
  }
  call.theta = {3, -3, 0, 0};
  for (const Scale scale : {Scale::kNoise, Scale::kAuto}) {
    call.settings.target = AdaptiveTarget{.scale = scale};
    EXPECT_DOUBLE_EQ(steps_of(call)[0].shared, 0.75 * 3.0);
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
  auto call = plain_case<TypeParam>(rng, 2, 9, 3, paper());
  call.settings.output = Output::kMean;
  call.theta = {3, 4, 0, 6, 8, 0};
  call.dy = {1, 0, 0, 0, 2, 0};
  const std::vector<Steps> steps = steps_of(call);
  EXPECT_EQ(steps[0].sample, (std::vector<double>{0.75 * 5.0}));
  EXPECT_EQ(steps[1].sample, (std::vector<double>{0.75 * 10.0 / 2.0}));
}

}  // namespace
}  // namespace aimle::cases
