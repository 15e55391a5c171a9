#include "aimle/estimate/threshold_weight.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

namespace aimle {
namespace {

using Exact = long double;
using Order = ThresholdTarget::Order;
constexpr NoiseKind kDensities[] = {NoiseKind::kGumbel, NoiseKind::kLogistic, NoiseKind::kNormal};

Exact density(NoiseKind kind, Exact u) {
  switch (kind) {
    case NoiseKind::kGumbel:
      return std::exp(-u - std::exp(-u));
    case NoiseKind::kLogistic:
      return std::exp(-std::abs(u)) / std::pow(1 + std::exp(-std::abs(u)), 2);
    default:
      return std::exp(-u * u / 2) / std::sqrt(2 * std::numbers::pi_v<Exact>);
  }
}

/// F(u), or 1 - F(u), without cancellation.
Exact tail(NoiseKind kind, Exact u, bool upper) {
  switch (kind) {
    case NoiseKind::kGumbel:
      return upper ? -std::expm1(-std::exp(-u)) : std::exp(-std::exp(-u));
    case NoiseKind::kLogistic:
      return 1 / (1 + std::exp(upper ? u : -u));
    default:
      return std::erfc((upper ? u : -u) / std::numbers::sqrt2_v<Exact>) / 2;
  }
}

/// p/(1 - F), or p/F.
Exact hazard(NoiseKind kind, Exact u, bool upper) {
  const Exact x = upper ? u : -u;
  if (kind == NoiseKind::kGumbel && u < -8) {  // 1 - F = 1, and F underflows
    return upper ? density(kind, u) : std::exp(-u);
  }
  if (kind != NoiseKind::kNormal || x < 100) return density(kind, u) / tail(kind, u, upper);
  Exact fraction = x;  // Laplace's continued fraction x + 1/(x + 2/(x + 3/...)), as p underflows
  for (int depth = 20; depth > 0; --depth) fraction = x + depth / fraction;
  return fraction;
}

/// Every size of u, and most often those that occur.
double draw_argument(std::mt19937_64& rng) {
  const double sizes[] = {1.0, 5.0, 40.0, 600.0};
  std::uniform_real_distribution<double> place(-1.0, 1.0);
  return place(rng) * sizes[rng() % 4];
}

TEST(ThresholdWeight, IsTheRatioOfDensityAndDistribution) {
  std::mt19937_64 rng(1);
  int64_t compared = 0;
  for (int trial = 0; trial < 200'000; ++trial) {
    const double u = draw_argument(rng);
    for (const NoiseKind kind : kDensities) {
      const auto check = [&](Order order, bool is_in, Exact exact) {
        if (!(exact > 1e-300L) || !(exact < 1e300L)) return;
        ++compared;
        const double weight = threshold_weight(kind, order, u, is_in);
        ASSERT_LE(std::abs(weight / exact - 1), 1e-12L)
            << name(kind) << " u=" << u << " in=" << is_in << " first=" << (order == Order::kFirst)
            << ": " << weight << " instead of " << exact;
      };
      const Exact p = density(kind, u);
      check(Order::kFirst, true, p);
      check(Order::kFirst, false, p);
      check(Order::kTrapezoid, true, hazard(kind, u, true));
      check(Order::kTrapezoid, false, hazard(kind, u, false));
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(compared, 1'500'000);
}

TEST(ThresholdWeight, IsFiniteAndNotNegativeEverywhere) {
  for (const NoiseKind kind : kDensities) {
    for (const Order order : {Order::kFirst, Order::kTrapezoid}) {
      for (const double size : {0.0, 1e-300, 1e-8, 37.0, 38.0, 690.0, 800.0, 1e8, 1e160, 1e308}) {
        for (const double u : {size, -size}) {
          for (const bool is_in : {true, false}) {
            const double weight = threshold_weight(kind, order, u, is_in);
            EXPECT_TRUE(std::isfinite(weight)) << name(kind) << " " << u;
            EXPECT_GE(weight, 0.0) << name(kind) << " " << u;
            if (order == Order::kFirst && size >= 690.0) {
              EXPECT_LT(weight, 1e-290) << name(kind) << " " << u;
            }
          }
        }
      }
    }
  }
}

TEST(Exp, IsAccurateAndStopsAtItsEnds) {
  std::mt19937_64 rng(2);
  std::uniform_real_distribution<double> place(-1.0, 1.0);
  for (int trial = 0; trial < 1'000'000; ++trial) {
    const double x = place(rng) * (trial % 3 == 0 ? kMaxExponent : trial % 3 == 1 ? 1.0 : 1e-3);
    ASSERT_LE(std::abs(exp_portable(x) / std::exp(static_cast<Exact>(x)) - 1), 1e-15L) << x;
    ASSERT_LE(std::abs(expm1_portable(x) / std::expm1(static_cast<Exact>(x)) - 1), 1e-15L) << x;
  }
  EXPECT_EQ(exp_portable(1e300), exp_portable(kMaxExponent));
  EXPECT_EQ(exp_portable(-1e300), exp_portable(-kMaxExponent));
  EXPECT_EQ(exp_portable(0.0), 1.0);
  EXPECT_EQ(expm1_portable(0.0), 0.0);
  EXPECT_EQ(expm1_portable(1e-30), 1e-30);
}

}  // namespace
}  // namespace aimle
