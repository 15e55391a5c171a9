#include "aimle/torch/estimator.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "aimle/torch/functions.h"

namespace aimle {
namespace {

at::Tensor leaf(at::IntArrayRef sizes, int64_t seed = 0) {
  at::manual_seed(seed);
  return at::randn(sizes).requires_grad_(true);
}

at::Tensor a_key() { return at::tensor({int64_t{5}, int64_t{6}}, at::kLong); }

/// A solver to which the estimator applies, for rows of six.
SolverSpec solver_for(const EstimatorInfo& info) {
  if (info.applies_to(topk(2))) return topk(2);
  return argmax();
}

/// What `action` throws, without a backtrace.
template <class Error, class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "no error";
}

void expect_contains(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message << "\n  lacks\n" << part;
}

TEST(Estimators, EveryNameWorksAndSaysWhatItIs) {
  for (const EstimatorInfo& info : estimators()) {
    SCOPED_TRACE(info.name);
    EXPECT_FALSE(info.summary.empty() || info.paper.empty() || info.structures.empty());
    EXPECT_EQ(&estimator_info(info.name), &estimator_info(info.name));
    const auto layer = estimator(info.name, solver_for(info));
    EXPECT_EQ(layer->name(), info.name);
    const at::Tensor theta = leaf({4, 6});
    const at::Tensor z = (*layer)(theta, {.key = a_key()});
    const at::Tensor losses = layer->surrogate(theta, z, z.mul(at::arange(6)).sum(-1));
    losses.sum().backward();
    EXPECT_TRUE(theta.grad().isfinite().all().item<bool>());
    layer->train(false);
    EXPECT_FALSE(layer->is_training());
    const at::Tensor best = (*layer)(theta.detach()).reshape({4, 6});
    EXPECT_TRUE(best.equal(solve(solver_for(info), theta.detach())));
  }
}

TEST(Estimators, SettingsAreKnownByTheirNames) {
  const std::vector<SettingInfo>& known = estimator_settings();
  for (const EstimatorInfo& info : estimators()) {
    for (const std::string& setting : info.settings) {
      EXPECT_TRUE(std::any_of(known.begin(), known.end(),
                              [&](const SettingInfo& one) { return one.name == setting; }))
          << info.name << " " << setting;
    }
  }
  for (const SettingInfo& setting : known) {
    EXPECT_TRUE(std::any_of(estimators().begin(), estimators().end(),
                            [&](const auto& info) { return info.takes(setting.name); }))
        << setting.name << " is taken by none";
  }
}

TEST(Estimators, UnknownNamesSuggestTheNearest) {
  const auto ask = [](const char* name) {
    return message_of<c10::ValueError>([&] { estimator(name, argmax()); });
  };
  expect_contains(ask("aimel"), "but got \"aimel\"; did you mean 'aimle'?");
  expect_contains(ask("IMLE"), "did you mean 'imle'?");
  expect_contains(ask("imle-central"), "did you mean 'imle_central'?");
  EXPECT_EQ(ask("qqqqqq").find("did you mean"), std::string::npos);
}

TEST(Estimators, SettingsThatAreNotTakenOrOutOfRangeAreRefusedByName) {
  const auto refused = [](const char* name, const EstimatorOptions& options) {
    return message_of<c10::ValueError>(
        [&] { estimator(name, solver_for(estimator_info(name)), options); });
  };
  expect_contains(refused("ste", {.lambda = 1.0}), "ste takes no lambda; it takes nb_samples");
  expect_contains(refused("dbb", {.nb_samples = 2}), "dbb takes no nb_samples; it takes lambda");
  expect_contains(refused("aimle_forward", {.symmetric_perturbation = true}), "takes no symmetric");
  expect_contains(refused("aimle", {.nb_samples = 0}), "nb_samples >= 1 but got 0");
  expect_contains(refused("aimle", {.theta_noise_temperature = -1.0}), "but got -1");
  expect_contains(refused("aimle", {.scope = "row"}), "scope to be one of \"example\"");
  expect_contains(refused("aimle", {.decay = 1.0}), "0 <= decay < 1 but got 1");
  expect_contains(refused("aimle", {.alpha_range = std::pair(0.0, 0.0)}), "upper end > 0");
  expect_contains(refused("aimle", {.output = "median"}), "output to be one of");
  expect_contains(refused("aimle_noise", {.noise = NoiseSpec{.kind = NoiseKind::kNone}}),
                  "needs a noise");
  expect_contains(refused("imle", {.lambda = -1.0}), "lambda_ >= 0 but got -1");
  expect_contains(refused("identity", {.projection = "half"}), "projection to be one of");
  expect_contains(refused("thresholds", {.max_weight = 0.0}), "max_weight > 0 but got 0");
  expect_contains(refused("thresholds", {.order = "second"}), "order to be one of");
  expect_contains(refused("thresholds", {.theta_noise_temperature = 0.0}), "temperature > 0");
  expect_contains(refused("thresholds", {.noise = NoiseSpec{.kind = NoiseKind::kSumOfGamma}}),
                  "a density");
  expect_contains(
      message_of<c10::ValueError>([] { estimator("ste", topk(2))->set_temperature(1); }),
      "ste has no temperature");
}

TEST(Estimators, StructuresToWhichOneDoesNotApplyAreRefused) {
  const auto refused = [](const char* name, const SolverSpec& solver) {
    return message_of<c10::TypeError>([&] { estimator(name, solver); });
  };
  expect_contains(refused("thresholds", grid_path()),
                  "thresholds applies to argmax, topk, spanning_tree but got grid_path");
}

TEST(Estimators, OptionsAreSetFromText) {
  EstimatorOptions options;
  set_option(options, "nb-samples", "7");
  set_option(options, "lambda", "2.5");
  set_option(options, "hard", "true");
  set_option(options, "scope", "batch");
  set_option(options, "alpha_range", "0.5:inf");
  set_option(options, "noise", "sum_of_gamma:3:20");
  EXPECT_EQ(options.nb_samples, 7);
  EXPECT_EQ(options.lambda, 2.5);
  EXPECT_EQ(options.hard, true);
  EXPECT_EQ(options.scope, "batch");
  EXPECT_EQ(options.alpha_range, std::pair(0.5, std::numeric_limits<double>::infinity()));
  EXPECT_EQ(options.noise->k, 3);
  EXPECT_EQ(options.noise->iterations, 20);
  const std::vector<std::string> expected = {"nb_samples", "noise",       "lambda",
                                             "scope",      "alpha_range", "hard"};
  EXPECT_EQ(given_options(options), expected);

  const auto refused = [&](const char* name, const char* value) {
    return message_of<c10::ValueError>([&] { set_option(options, name, value); });
  };
  expect_contains(refused("lamda", "1"),
                  "no estimator has an option \"lamda\"; did you mean 'lambda'?");
  for (const char* wrong : {"", "x", "1.5", "1 ", "99999999999999999999"}) {
    expect_contains(refused("nb_samples", wrong), "expected nb_samples to be an integer >= 1");
  }
  for (const char* wrong : {"", "ten", "1,5", "0x"}) {
    expect_contains(refused("lambda", wrong), "expected lambda to be a number >= 0");
  }
  for (const char* wrong : {"", "1", "True", "yes"}) {
    expect_contains(refused("hard", wrong), "expected hard to be true or false");
  }
  for (const char* wrong :
       {"", "gauss", "gumbel:3", "sum_of_gamma", "sum_of_gamma:", "sum_of_gamma:1:2:3"}) {
    expect_contains(refused("noise", wrong), "expected noise to be none, gumbel");
  }
  for (const char* wrong : {"", "1", "1:2:3", ":"}) {
    expect_contains(refused("alpha_range", wrong), "expected alpha_range to be LOW:HIGH");
  }
}

}  // namespace
}  // namespace aimle
