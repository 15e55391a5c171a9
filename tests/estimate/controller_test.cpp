#include "aimle/estimate/controller.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

#include "aimle/estimate/settings.h"
#include "tests/message_of.h"

namespace aimle {
namespace {

/// A pass in which `nonzeros` entries changed over `samples` samples.
Changes seen(int64_t nonzeros, int64_t samples = 1) {
  return {.nonzeros = nonzeros, .samples = samples, .changed = nonzeros > 0};
}

/// Algorithm 1 with some of its settings changed.
template <class Change>
AdaptiveTarget paper_with(Change change) {
  AdaptiveTarget target = AdaptiveTarget::paper();
  change(target);
  return target;
}

void update(const AdaptiveTarget& target, const Changes& changes, ControllerState& state) {
  update_alpha(target, 1, changes, state);
}

TEST(Controller, WithoutChangesGbarDecaysAndAlphaClimbs) {
  const AdaptiveTarget target = AdaptiveTarget::paper();
  ControllerState state;
  for (int t = 1; t <= 2000; ++t) {
    update(target, seen(0, 7), state);
    ASSERT_NEAR(state.gbar, std::pow(0.9, t), 1e-12) << "t=" << t;
    ASSERT_NEAR(state.alpha, t * 1e-3, 1e-12) << "t=" << t;
    ASSERT_EQ(state.updates, t);
  }
}

TEST(Controller, MovesLikeAlgorithmOne) {
  std::mt19937_64 rng(2);
  for (int trial = 0; trial < 50; ++trial) {
    const AdaptiveTarget target = paper_with([&](AdaptiveTarget& t) {
      t.step = 0.01 * (1 + trial % 3);
      t.target_norm = 0.5 * (1 + trial % 4);
      t.decay = 0.1 * (trial % 10);
    });
    ControllerState state;
    double alpha = 0.0, gbar = 1.0;
    for (int t = 0; t < 100; ++t) {
      const auto samples = static_cast<int64_t>(1 + rng() % 9);
      const auto nonzeros = static_cast<int64_t>(rng() % 30);
      update(target, seen(nonzeros, samples), state);
      gbar = target.decay * gbar + (1 - target.decay) * (double(nonzeros) / double(samples));
      alpha = std::max(0.0, gbar <= target.target_norm ? alpha + target.step : alpha - target.step);
      ASSERT_EQ(state.gbar, gbar) << "trial " << trial << ", t=" << t;
      ASSERT_EQ(state.alpha, alpha) << "trial " << trial << ", t=" << t;
    }
  }
}

TEST(Controller, TheNewAverageDecidesAndEqualityRaises) {
  // gbar = 0.5 * 1 + 0.5 * 3 = 2 = target_norm.
  AdaptiveTarget target = paper_with([](AdaptiveTarget& t) {
    t.step = 0.5;
    t.target_norm = 2.0;
    t.decay = 0.5;
  });
  ControllerState state{.alpha = 1.0};
  update(target, seen(3), state);
  EXPECT_EQ(state.gbar, 2.0);
  EXPECT_EQ(state.alpha, 1.5);

  target.reference = true;
  ControllerState strict{.alpha = 1.0};
  update(target, seen(3), strict);
  EXPECT_EQ(strict.gbar, 2.0);
  EXPECT_EQ(strict.alpha, 0.5);
}

TEST(Controller, APassWithoutGradientsLeavesEverythingAlone) {
  const AdaptiveTarget momentum = paper_with([](AdaptiveTarget& t) { t.momentum = 0.5; });
  for (const AdaptiveTarget& target : {momentum, AdaptiveTarget{}}) {
    for (const int64_t updates : {0, 12}) {
      ControllerState state{.alpha = 0.25, .gbar = 0.75, .updates = updates, .memory = 0.125};
      update(target, {.nonzeros = 5, .samples = 0, .changed = 3, .zeros = 1, .entries = 9}, state);
      EXPECT_EQ(state.alpha, 0.25);
      EXPECT_EQ(state.gbar, 0.75);
      EXPECT_EQ(state.updates, updates);
      EXPECT_EQ(state.memory, 0.125);
    }
  }
}

TEST(Controller, AdditiveAlphaStaysInItsRange) {
  const AdaptiveTarget target = paper_with([](AdaptiveTarget& t) {
    t.step = 0.3;
    t.alpha_min = 0.1;
    t.alpha_max = 1.0;
  });
  ControllerState state{.alpha = 0.1};
  for (int t = 0; t < 10; ++t) update(target, seen(0), state);
  EXPECT_EQ(state.alpha, 1.0);
  for (int t = 0; t < 60; ++t) update(target, seen(100), state);
  EXPECT_EQ(state.alpha, 0.1);
  const AdaptiveTarget unbounded = paper_with([](AdaptiveTarget& t) { t.step = 10.0; });
  ControllerState free{.alpha = 0.0, .gbar = 0.0};
  for (int t = 0; t < 1000; ++t) update(unbounded, seen(0), free);
  EXPECT_EQ(free.alpha, 10000.0);
  for (int t = 0; t < 2000; ++t) update(unbounded, seen(100), free);
  EXPECT_EQ(free.alpha, 0.0);
}

TEST(Controller, MultiplicativeRule) {
  const AdaptiveTarget target{.target_norm = 1.0,
                              .rule = AdaptiveTarget::Rule::kMultiplicative,
                              .factor = 1.25,
                              .alpha_min = 0.01,
                              .alpha_max = 20.0};
  ControllerState state{.alpha = 1.0};
  double alpha = 1.0, gbar = 1.0;
  std::mt19937_64 rng(3);
  for (int t = 0; t < 400; ++t) {
    const int64_t nonzeros = t < 100 ? 0 : t < 200 ? 10 : static_cast<int64_t>(rng() % 3);
    update(target, seen(nonzeros), state);
    gbar = 0.9 * gbar + (1.0 - 0.9) * static_cast<double>(nonzeros);
    alpha = std::clamp(gbar <= 1.0 ? alpha * 1.25 : alpha / 1.25, 0.01, 20.0);
    ASSERT_EQ(state.alpha, alpha) << "t=" << t;
    if (t == 99) {
      EXPECT_EQ(alpha, 20.0);
    }
    if (t == 199) {
      EXPECT_EQ(alpha, 0.01);
    }
  }
}

TEST(Controller, MomentumAddsAShareOfTheLastMove) {
  const AdaptiveTarget target = paper_with([](AdaptiveTarget& t) {
    t.step = 1.0;
    t.momentum = 0.5;
  });
  ControllerState state{.alpha = 10.0, .gbar = 0.0};
  update(target, seen(0), state);  // u = 1
  EXPECT_EQ(state.alpha, 11.0);
  update(target, seen(0), state);  // u = 1.5
  EXPECT_EQ(state.alpha, 12.5);
  update(target, seen(1000), state);  // u = 0.75 - 1
  EXPECT_EQ(state.alpha, 12.25);
  EXPECT_EQ(state.memory, -0.25);
}

TEST(Controller, TheFirstPassMeasuresTheReachWithTheLargestStep) {
  const AdaptiveTarget target;
  ControllerState state{.alpha = target.start()};
  EXPECT_EQ(state.alpha, 4.0);
  EXPECT_EQ(step_alpha(target, 0.5, 0, true), 4.0);
  EXPECT_EQ(step_alpha(target, 0.5, 0, false), 0.5);
  EXPECT_EQ(step_alpha(target, 0.5, 1, true), 0.5);
  EXPECT_EQ(step_alpha(target, 0.5, kReachPeriod, true), 4.0);
  EXPECT_EQ(step_alpha(AdaptiveTarget::paper(), 0.5, 0, true), 0.5);
  update_alpha(target, 4, seen(36, 3), state);
  EXPECT_EQ(state.memory, 12.0);
  EXPECT_EQ(state.gbar, 12.0);
  EXPECT_EQ(state.alpha, 4.0);
  EXPECT_EQ(state.updates, 1);
  EXPECT_EQ(changes_wanted(target, 4, state), 3.0);  // half of 12, divided by sqrt(4)
}

TEST(Controller, TheReachIsAMeanAtFirstAndThenAMovingAverage) {
  const AdaptiveTarget target;
  ControllerState state{.alpha = target.start()};
  double reach = 0.0, sum = 0.0;
  for (int64_t probe = 0; probe < 25; ++probe) {
    const auto count = static_cast<double>(3 * probe + 1);
    update(target, seen(3 * probe + 1), state);
    sum += count;
    reach = probe < 10 ? sum / static_cast<double>(probe + 1) : reach + 0.1 * (count - reach);
    ASSERT_NEAR(state.memory, reach, 1e-12) << probe;
    const double measured = state.memory;
    for (int64_t t = 1; t < kReachPeriod; ++t) {
      update(target, seen(100), state);
      ASSERT_EQ(state.memory, measured) << probe << ", " << t;
    }
    ASSERT_EQ(state.updates, (probe + 1) * kReachPeriod);
  }
}

/// The count grows with the step up to what can change, as min(alpha, 1) * most.
TEST(Controller, AlphaSettlesWhereHalfOfTheReachChanges) {
  for (const int64_t samples : {1, 4, 100}) {
    const AdaptiveTarget target;
    ControllerState state{.alpha = target.start()};
    const int64_t most = 1000;
    for (int t = 0; t < 1000; ++t) {
      const double alpha = step_alpha(target, state.alpha, state.updates, true);
      update_alpha(target, samples,
                   seen(static_cast<int64_t>(std::min(alpha, 1.0) * static_cast<double>(most))),
                   state);
    }
    const double expected = 0.5 / std::sqrt(static_cast<double>(samples));
    EXPECT_NEAR(state.alpha, expected, 0.2 * expected) << samples;
  }
}

TEST(Controller, CountsAddUp) {
  Changes total{.nonzeros = 1, .samples = 2, .changed = 3, .zeros = 4, .entries = 5};
  total.add({.nonzeros = 10, .samples = 20, .changed = 30, .zeros = 40, .entries = 50});
  EXPECT_EQ(total.nonzeros, 11);
  EXPECT_EQ(total.samples, 22);
  EXPECT_EQ(total.changed, 33);
  EXPECT_EQ(total.zeros, 44);
  EXPECT_EQ(total.entries, 55);
}

// ---- Settings -----------------------------------------------------------------------------------

template <class Call>
std::string error_of(const Call& call) {
  return message_of<std::invalid_argument>(call);
}

void expect_error(const std::string& message, std::initializer_list<std::string> words) {
  for (const std::string& word : words) {
    EXPECT_NE(message.find(word), std::string::npos) << "\"" << word << "\" in: " << message;
  }
}

TEST(Settings, RefuseImpossibleTargets) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const double bad : {-2.0, inf, nan}) {
    expect_error(error_of([&] { FixedTarget{.lambda = bad}.validate(); }), {"lambda_", ">= 0"});
    expect_error(error_of([&] { AdaptiveTarget{.step = bad}.validate(); }), {"step", ">= 0"});
    expect_error(error_of([&] { AdaptiveTarget{.target_norm = bad}.validate(); }),
                 {"target_norm", ">= 0"});
    expect_error(error_of([&] { AdaptiveTarget{.decay = bad}.validate(); }), {"decay < 1"});
    expect_error(error_of([&] { AdaptiveTarget{.factor = bad}.validate(); }), {"factor > 1"});
    expect_error(error_of([&] { AdaptiveTarget{.momentum = bad}.validate(); }), {"momentum < 1"});
    expect_error(error_of([&] { AdaptiveTarget{.alpha_min = bad}.validate(); }), {"alpha_range"});
  }
  for (const double bad : {-1.0, nan}) {
    expect_error(error_of([&] { AdaptiveTarget{.alpha_max = bad}.validate(); }), {"alpha_range"});
  }
  expect_error(error_of([&] { AdaptiveTarget{.decay = 1.0}.validate(); }), {"decay < 1", "1"});
  expect_error(error_of([&] { AdaptiveTarget{.factor = 1.0}.validate(); }), {"factor > 1", "1"});
  expect_error(error_of([&] { AdaptiveTarget{.alpha_min = 2, .alpha_max = 1}.validate(); }),
               {"alpha_range", "(2, 1)"});
  expect_error(error_of([&] { AdaptiveTarget{.alpha_min = 0.0}.validate(); }),
               {"alpha_range", "> 0", "multiplicative"});
  expect_error(error_of([&] { AdaptiveTarget{.alpha_max = 0.0}.validate(); }),
               {"target_norm", "alpha_range[1]"});
  expect_error(error_of([&] { AdaptiveTarget{.alpha_max = inf}.validate(); }),
               {"target_norm", "alpha_range[1]"});
  expect_error(error_of([&] { AdaptiveTarget{.momentum = 0.5}.validate(); }),
               {"momentum", "target_norm", "0.5"});
  EXPECT_EQ(error_of([] { AdaptiveTarget::paper().validate(); }), "");
  EXPECT_EQ(error_of([] { AdaptiveTarget{}.validate(); }), "");
}

TEST(Settings, RefuseImpossibleEstimators) {
  auto message = [](auto change) {
    PassSettings settings;
    change(settings);
    return error_of([&] { settings.validate(); });
  };
  EXPECT_EQ(message([](PassSettings&) {}), "");
  expect_error(message([](PassSettings& s) { s.samples = 0; }), {"nb_samples >= 1", "0"});
  expect_error(message([](PassSettings& s) { s.theta_temperature = -0.5; }),
               {"theta_noise_temperature", ">= 0", "-0.5"});
  expect_error(message([](PassSettings& s) { s.target_temperature = std::nan(""); }),
               {"target_noise_temperature", ">= 0", "nan"});
  expect_error(message([](PassSettings& s) { s.target = FixedTarget{.lambda = -2}; }),
               {"lambda_", "-2"});
  expect_error(message([](PassSettings& s) {
                 s.target = AdaptiveTarget{.scale = AdaptiveTarget::Scale::kNoise};
               }),
               {"scale=\"noise\"", "None"});
}

}  // namespace
}  // namespace aimle
