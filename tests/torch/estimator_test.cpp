#include "aimle/torch/estimator.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/serialize.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "aimle/torch/functions.h"
#include "aimle/torch/module.h"
#include "tests/torch/tensors.h"

namespace aimle {
namespace {

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
    EXPECT_FALSE(info.summary.empty() || info.paper.empty() || info.structures().empty());
    EXPECT_EQ(estimator_info(info.name).summary, info.summary);
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
  const std::vector<OptionInfo>& known = known_estimator_options();
  for (const EstimatorInfo& info : estimators()) {
    for (const std::string& setting : info.settings) {
      EXPECT_TRUE(std::any_of(known.begin(), known.end(),
                              [&](const OptionInfo& one) { return one.name == setting; }))
          << info.name << " " << setting;
    }
  }
  for (const OptionInfo& setting : known) {
    EXPECT_TRUE(std::any_of(estimators().begin(), estimators().end(),
                            [&](const auto& info) { return info.takes(setting.name); }))
        << setting.name << " is taken by none";
  }
}

/// "1 (dpo: 10, imle and ste: 3)": what it says of this estimator; empty if it is no value.
std::string default_for(const OptionInfo& setting, const std::string& estimator) {
  const std::string& text = setting.by_default;
  const size_t exceptions = text.find('(');
  for (size_t at = text.find(estimator); at != std::string::npos;
       at = text.find(estimator, at + 1)) {
    const char before = text[at - 1], after = text[at + estimator.size()];
    if (at < exceptions || (before != ' ' && before != '(') || (after != ' ' && after != ':')) {
      continue;
    }
    const size_t value = text.find(": ", at) + 2;
    return text.substr(value, text.find_first_of(",)", value) - value);
  }
  return text.substr(0, exceptions == 0 ? 0 : exceptions - (exceptions < text.size() ? 1 : 0));
}

/// z and the gradient of the second of two steps.
std::vector<at::Tensor> second_step(const EstimatorInfo& info, const EstimatorOptions& options) {
  const auto made = estimator(info.name, solver_for(info), options);
  std::vector<at::Tensor> result;
  for (int64_t step = 0; step < 2; ++step) {
    const at::Tensor theta = leaf({4, 6}, step);
    const at::Tensor z = (*made)(theta, {.key = a_key()});
    const at::Tensor weights = at::arange(6, at::kFloat).square();
    const bool scored = made->needs_losses();
    const at::Tensor losses = z.mul(weights).sum(-1);
    (scored ? made->surrogate(theta, z, losses) : losses).sum().backward();
    result = {z, theta.grad()};
  }
  return result;
}

TEST(Estimators, DefaultsAreThoseNamed) {
  int compared = 0;
  for (const EstimatorInfo& info : estimators()) {
    const std::vector<at::Tensor> expected = second_step(info, {});
    for (const OptionInfo& setting : known_estimator_options()) {
      const std::string value = default_for(setting, info.name);
      if (!info.takes(setting.name) || value.empty()) continue;
      EstimatorOptions options;
      set_option(options, setting.name, value);
      if (setting.name == "step") options.rule = "multiplicative";
      const std::vector<at::Tensor> found = second_step(info, options);
      EXPECT_TRUE(found[0].equal(expected[0]) && found[1].equal(expected[1]))
          << info.name << " " << setting.name << " " << value;
      ++compared;
    }
  }
  EXPECT_GT(compared, 100);
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
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    expect_contains(refused("aimle", {.target_norm = bad}), "finite target_norm >= 0");
    expect_contains(refused("aimle", {.initial_gbar = bad}), "finite initial_gbar >= 0 but got");
  }
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
  expect_contains(refused("gumbel_softmax", {.temperature = 0.0}), "temperature > 0 but got 0");
  expect_contains(refused("l2x", {.hard = true}), "l2x takes no hard");
  expect_contains(refused("softsub", {.nb_samples = 0}), "nb_samples >= 1 but got nb_samples=0");
  expect_contains(refused("sst", {.output = "median"}), "output to be \"samples\" or \"flat\"");
  expect_contains(refused("sfe", {.baseline = "mean"}), "baseline to be \"none\" or");
  expect_contains(refused("sfe", {.baseline = "leave_one_out"}), "nb_samples >= 2");
  expect_contains(refused("sfe", {.output = "mean"}), "the loss of every sample");
  expect_contains(refused("aimle_covariance", {.output = "mean"}), "the loss of every sample");
  expect_contains(refused("aimle_covariance", {.share = 2.0}), "0 <= share <= 1 but got 2");
  expect_contains(refused("aimle_covariance", {.nb_samples = 1}), "nb_samples >= 2");
  expect_contains(refused("aimle_covariance", {.noise = NoiseSpec{.kind = NoiseKind::kNone}}),
                  "needs noise");
  expect_contains(refused("dpo", {.noise = NoiseSpec{.kind = NoiseKind::kSumOfGamma, .k = 3}}),
                  "density in closed form, normal, gumbel or logistic, but got sum_of_gamma");
  expect_contains(refused("dpo", {.nb_samples = 1}), "nb_samples >= 2");
  expect_contains(refused("dpo", {.output = "samples"}), "output to be \"mean\"");
  expect_contains(refused("dpo", {.temperature = -1.0}), "temperature > 0 but got -1");
  expect_contains(
      message_of<c10::ValueError>([] { estimator("ste", topk(2))->set_temperature(1); }),
      "ste has no temperature");
}

TEST(Estimators, TheTemperatureOfTheNoiseHasTwoNames) {
  const at::Tensor theta = at::linspace(-1, 1, 8).view({1, 8});
  const LayerCall call{.key = at::tensor({1, 2}, at::kLong)};
  const auto z = [&](const EstimatorOptions& options) {
    return (*estimator("ste", topk(3), options))(theta, call);
  };
  const at::Tensor expected = z({.nb_samples = 50, .theta_noise_temperature = 0.1});
  EXPECT_TRUE(z({.nb_samples = 50, .temperature = 0.1}).equal(expected));
  EXPECT_FALSE(z({.nb_samples = 50}).equal(expected));
  expect_contains(message_of<c10::ValueError>([] {
                    estimator("aimle", topk(2),
                              {.temperature = 1.0, .theta_noise_temperature = 1.0});
                  }),
                  "two names of one setting of aimle, but got both");
}

TEST(Estimators, GridPathsAreOfCosts) {
  for (const char* name : {"aimle", "imle", "ste", "dbb", "identity", "dpo", "aimle_covariance"}) {
    expect_contains(
        message_of<c10::ValueError>([&] { estimator(name, grid_path(), {.sense = "max"}); }),
        "expected sense \"min\" for grid_path");
  }
  const at::Tensor costs = at::ones({1, 3, 3});
  EXPECT_THROW(perturbed_fenchel_young_loss(costs, costs, grid_path(), {.sense = Sense::kMax}),
               c10::ValueError);
  EXPECT_THROW(spo_plus_loss(costs, costs, grid_path(), {.sense = Sense::kMax}), c10::ValueError);
}

TEST(Estimators, CostsOfGraphsThatAreClippedGetNoGradientFromTheSolution) {
  // The edges (0, 1), (1, 2) and (0, 2), from 0 to 2: the first two are the cheapest path.
  const at::Tensor data = at::tensor({0, 2, 0, 0, 1, 3, 0, 1, 0, 0, 1, 2}, at::kLong);
  const at::Tensor target = at::tensor({0.0, 0.0, 1.0}).reshape({1, 3});
  const LayerCall call{.row_data = data, .key = a_key()};
  const auto gradient = [&](const at::Tensor& structure) {
    const at::Tensor costs = at::tensor({-9.0, -9.0, 5.0}).reshape({1, 3}).requires_grad_();
    perturbed_fenchel_young_loss(costs, structure, solver("graph_path:vertices=3"),
                                 {.temperature = 0.1}, call)
        .sum()
        .backward();
    return costs.grad();
  };
  EXPECT_TRUE(gradient(target).equal(target));
  EXPECT_TRUE(gradient(target.to(at::kBool)).equal(target));
}

TEST(Estimators, StructuresToWhichOneDoesNotApplyAreRefused) {
  const auto refused = [](const char* name, const SolverSpec& solver) {
    return message_of<c10::TypeError>([&] { estimator(name, solver); });
  };
  expect_contains(refused("thresholds", grid_path()),
                  "thresholds applies to argmax, topk, spanning_tree");
  expect_contains(refused("gumbel_softmax", topk(2)),
                  "gumbel_softmax applies to argmax but got topk");
  expect_contains(refused("reinmax", grid_path()), "applies to argmax but got grid_path");
  expect_contains(refused("l2x", spanning_tree(3)), "applies to topk but got spanning_tree");
  for (const char* name : {"sfe", "sst", "exact"}) {
    expect_contains(refused(name, grid_path()), "applies to argmax, topk, spanning_tree");
  }
}

TEST(Estimators, CallsAreCheckedByName) {
  const at::Tensor theta = leaf({2, 6});
  const at::Tensor k = at::tensor({int64_t{1}, int64_t{3}}, at::kLong);
  const auto refused = [&](const char* name, const SolverSpec& solver, const at::Tensor& given,
                           const LayerCall& call) {
    return message_of<c10::TypeError>([&] { (*estimator(name, solver))(given, call); });
  };
  expect_contains(refused("gumbel_softmax", argmax(), theta, {.row_data = k}),
                  "[aimle::gumbel_softmax] argmax takes no k");
  expect_contains(refused("sst", topk(2), theta.to(at::kLong), {}),
                  "[aimle::sst] expected theta of a floating-point type but got int64");
  for (const char* name : {"softsub", "l2x"}) {
    expect_contains(
        message_of<c10::ValueError>([&] { (*estimator(name, topk(2)))(theta, {.row_data = k}); }),
        "expected 0 <= k <= 2, the solver's k, in every row");
    expect_contains(message_of<c10::ValueError>([&] { (*estimator(name, topk(99)))(theta); }),
                    "expected 0 <= k <= n but got k=99");
    const at::Tensor mask = at::zeros_like(theta, at::kBool);
    expect_contains(
        message_of<c10::ValueError>([&] { (*estimator(name, topk(2)))(theta, {.mask = mask}); }),
        "expected at least k=2 entries to choose from");
  }
  const auto layer = estimator("sfe", topk(2), {.nb_samples = 3});
  const at::Tensor z = (*layer)(theta);
  expect_contains(message_of<c10::ValueError>([&] { layer->surrogate(theta, z, at::zeros({2})); }),
                  "expected a loss for every sample, [2, 3], but got shape [2]");
}

TEST(Estimators, TheScoreFunctionGetsItsGradientFromTheSurrogateAlone) {
  const auto layer = estimator("sfe", argmax(), {.nb_samples = 4});
  EXPECT_TRUE(layer->needs_losses());
  const at::Tensor theta = leaf({3, 5}).detach().to(at::kDouble).requires_grad_(true);
  const at::Tensor z = (*layer)(theta);
  EXPECT_FALSE(z.requires_grad());
  const at::Tensor f = z.mul(at::arange(5)).sum(-1).square();
  layer->surrogate(theta, z, f).sum().backward();
  const at::Tensor centred = z.sub(at::softmax(theta.detach(), -1).unsqueeze(1));
  EXPECT_TRUE(theta.grad().allclose(f.unsqueeze(-1).mul(centred).sum(1)));
}

TEST(Estimators, TemperaturesAnnealAndAreState) {
  EXPECT_EQ(anneal(0), 1.0);
  EXPECT_EQ(anneal(999), 1.0);
  EXPECT_DOUBLE_EQ(anneal(1000), std::exp(-0.03));
  EXPECT_EQ(anneal(24'000), 0.5);
  EXPECT_EQ(anneal(10, {.start = 2.0, .rate = 0.0, .every = 1}), 2.0);
  EXPECT_THROW(anneal(1, {.every = 0}), c10::ValueError);
  const auto layer = estimator("gumbel_softmax", argmax());
  layer->set_temperature(0.25);
  EXPECT_EQ(layer->state().at("temperature").item<float>(), 0.25F);
  const at::Tensor theta = leaf({3, 5}).detach();
  const at::Tensor eps = sample_noise({}, a_key(), {3}, 1, {5});
  const at::Tensor expected = at::softmax(theta.unsqueeze(1).add(eps).div(0.25), -1);
  EXPECT_TRUE((*layer)(theta, {.key = a_key()}).equal(expected));
}

TEST(Estimators, ReferenceIsTheAuthorsCodeWithOneStepForTheBatch) {
  const auto state = [](const EstimatorOptions& options) {
    const auto layer = estimator("aimle", topk(2), options);
    const at::Tensor theta = leaf({4, 6});
    (*layer)(theta, {.key = a_key()}).mul(at::arange(6)).sum().backward();
    return std::pair(theta.grad(), layer->stats().at("lambda_max").item<double>());
  };
  const EstimatorOptions reference = {.nb_samples = 4, .initial_alpha = 1.0, .reference = true};
  const EstimatorOptions batch = {.nb_samples = 4,
                                  .initial_alpha = 1.0,
                                  .target_norm = 1.0,
                                  .scope = "batch",
                                  .scale = "theta"};
  const auto [theirs, their_lambda] = state(reference);
  const auto [ours, our_lambda] = state(batch);
  EXPECT_DOUBLE_EQ(their_lambda, our_lambda);
  EXPECT_TRUE(theirs.allclose(ours.mul(2)));  // too large by sqrt(nb_samples)
}

struct EstimatorNet : torch::nn::Module {
  EstimatorModule choose =
      register_module("choose", EstimatorModule("sst", topk(2), EstimatorOptions{.hard = true}));
  EstimatorModule adapt = register_module("adapt", EstimatorModule("aimle_covariance", topk(2)));
};

TEST(EstimatorModule, StateIsSavedSwitchedAndKeepsItsType) {
  EstimatorNet net;
  net.choose->estimator().set_temperature(0.5);
  const at::Tensor theta = leaf({4, 6});
  const at::Tensor z = net.adapt->forward(theta);
  net.adapt->surrogate(theta, z, z.mul(at::arange(6)).sum(-1)).sum().backward();
  EXPECT_EQ(net.adapt->estimator().state().at("updates").item<int64_t>(), 1);
  net.to(at::kHalf);
  EXPECT_EQ(net.named_buffers()["adapt.alpha"].scalar_type(), at::kDouble);

  std::stringstream file;
  torch::serialize::OutputArchive out;
  net.save(out);
  out.save_to(file);
  EstimatorNet resumed;
  torch::serialize::InputArchive in;
  in.load_from(file);
  resumed.load(in);
  EXPECT_EQ(resumed.choose->estimator().state().at("temperature").item<float>(), 0.5F);
  EXPECT_EQ(resumed.adapt->estimator().state().at("updates").item<int64_t>(), 1);
  resumed.eval();
  EXPECT_TRUE(resumed.choose->forward(theta).squeeze(1).equal(solve(topk(2), theta.detach())));
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
