#include "aimle/torch/layer.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/serialize.h>

#include <functional>
#include <sstream>
#include <thread>
#include <vector>

#include "aimle/torch/functions.h"
#include "aimle/torch/module.h"
#include "tests/torch/tensors.h"

namespace aimle {
namespace {

TEST(Layer, ReturnsHardSamplesAndAGradient) {
  Layer layer([] {
    LayerOptions options = aimle::aimle(topk(3));
    options.noise = NoiseSpec{.kind = NoiseKind::kSumOfGamma, .k = 3};
    options.nb_samples = 4;
    options.initial_alpha = 1.0;
    return options;
  }());
  const at::Tensor theta = leaf({5, 10});
  const at::Tensor z = layer(theta);
  EXPECT_EQ(z.sizes(), at::IntArrayRef({5, 4, 10}));
  EXPECT_TRUE(z.sum(-1).eq(3).all().item<bool>());
  at::manual_seed(1);
  z.backward(at::randn(z.sizes()));
  EXPECT_GT(theta.grad().abs().sum().item<double>(), 0.0);
  EXPECT_EQ(layer.state().at("updates").item<int64_t>(), 1);
  EXPECT_GT(layer.state().at("reach").item<double>(), 0.0);
  EXPECT_GT(layer.stats().at("lambda_mean").item<double>(), 0.0);
}

TEST(Layer, ThreadsThatShareItLoseNoUpdate) {
  const Layer layer(aimle::aimle(argmax()));
  constexpr int kThreads = 2;
  constexpr int kPasses = 5000;
  const at::Tensor direction = at::arange(4, at::kFloat).add(1.0);
  const at::Tensor key = a_key();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      const at::Tensor theta = at::zeros({1, 4}).requires_grad_(true);
      for (int i = 0; i < kPasses; ++i)
        layer(theta, {.key = key}).backward(direction.view({1, 1, 4}));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(layer.state().at("updates").item<int64_t>(), kThreads * kPasses);
}

// A function has the bits of the native solver that it calls.
TEST(Layer, TakesAnyFunctionAsASolver) {
  const SolverSpec native = topk(3);
  int64_t rows = 0;
  const auto solve_topk = [&](const at::Tensor& x) {
    rows += x.size(0);
    return solve(topk(3), x);
  };
  const SolverSpec own = callable(solve_topk, Sense::kMax, 1, KnownSize::kFixed);
  const SolverSpec undeclared = callable(solve_topk);
  const auto with = [](LayerOptions options, int64_t samples, const char* output) {
    options.nb_samples = samples;
    options.output = output;
    return options;
  };
  using Make = std::function<LayerOptions(const SolverSpec&)>;
  const std::vector<Make> all = {[](const SolverSpec& s) { return aimle::aimle(s); },
                                 [](const SolverSpec& s) { return imle(s, 3.0); },
                                 [](const SolverSpec& s) { return ste(s); },
                                 [](const SolverSpec& s) { return dbb(s, 5.0); }};
  for (const Make& make : all) {
    for (const char* output : {"samples", "flat", "mean"}) {
      for (const auto& [masked, function] :
           {std::pair(false, own), std::pair(true, own), std::pair(false, undeclared)}) {
        const Layer ours(with(make(native), 2, output)), theirs(with(make(function), 2, output));
        const at::Tensor theta = leaf({4, 9}, 3);
        const at::Tensor same = theta.detach().clone().requires_grad_(true);
        LayerCall call{.key = a_key()};
        if (masked) call.mask = at::arange(9).ne(2).unsqueeze(0);
        const at::Tensor z = ours(theta, call), z_own = theirs(same, call);
        EXPECT_TRUE(z.equal(z_own));
        const at::Tensor dy = at::randn(z.sizes());
        z.backward(dy);
        z_own.backward(dy);
        EXPECT_TRUE(theta.grad().equal(same.grad()));
        for (const auto& [name, tensor] : ours.state()) {
          EXPECT_TRUE(tensor.equal(theirs.state().at(name))) << name;
        }
      }
    }
  }
  rows = 0;
  const Layer layer(imle(own, 3.0));
  const at::Tensor theta = leaf({8, 9});
  const at::Tensor z = layer(theta);
  at::Tensor dy = at::zeros(z.sizes());
  dy[5].normal_();
  z.backward(dy);
  EXPECT_EQ(rows, 8 + 1);  // one row has a gradient
}

TEST(Layer, AFunctionMayReturnTheSameTensorAgain) {
  const auto fresh = [](const at::Tensor& x) { return solve(topk(3), x); };
  const auto reusing = [memory = at::empty({100, 9})](const at::Tensor& x) {
    return memory.slice(0, 0, x.size(0)).copy_(solve(topk(3), x));
  };
  for (const bool central : {false, true}) {
    at::Tensor gradients[2];
    for (const bool reuses : {false, true}) {
      LayerOptions options = imle(reuses ? callable(reusing) : callable(fresh), 3.0);
      if (central) options.difference = Difference::kCentral;
      const Layer layer(options);
      const at::Tensor theta = leaf({4, 9}, 3);
      const at::Tensor z = layer(theta, {.key = a_key()});
      layer(leaf({4, 9}, 5));
      z.backward(at::arange(9.0).expand(z.sizes()));
      gradients[reuses] = theta.grad();
    }
    EXPECT_TRUE(gradients[0].equal(gradients[1])) << central;
    EXPECT_TRUE(gradients[0].ne(0).any().item<bool>());
  }
}

TEST(Layer, RefusesWhatAFunctionMustNotDo) {
  const at::Tensor theta = leaf({2, 4});
  const auto layer_of = [](SolverFunction function) {
    return Layer(imle(callable(std::move(function)), 1.0));
  };
  EXPECT_THROW(layer_of([](const at::Tensor& x) { return x.sum(-1); })(theta), c10::ValueError);
  EXPECT_THROW(layer_of([](const at::Tensor& x) { return x.gt(0); })(theta), c10::TypeError);
  EXPECT_THROW(callable({}), c10::ValueError);
  EXPECT_THROW(Layer(thresholds(callable([](const at::Tensor& x) { return x; })))(theta),
               c10::ValueError);
  const at::Tensor costs = leaf({1, 3}).detach().abs();
  const auto cheapest = [](const at::Tensor& x) { return solve(argmax(), -x); };
  const Layer layer(imle(callable(cheapest, Sense::kMin, 1, KnownSize::kVaries), 1.0));
  EXPECT_EQ(layer.options().noise->kind, NoiseKind::kNormal);
  EXPECT_EQ(layer(costs).sum().item<double>(), 1.0);
}

TEST(Layer, SameKeySameSolution) {
  const Layer layer(aimle::aimle(spanning_tree(6)));
  const at::Tensor theta = leaf({7, 15});
  const at::Tensor first = layer(theta, {.key = a_key()});
  EXPECT_TRUE(first.equal(layer(theta, {.key = a_key()})));
  EXPECT_TRUE(first.sum(-1).eq(5).all().item<bool>());
}

TEST(Layer, PartsOfABatchMoveTheStateAsTheWhole) {
  LayerOptions options = aimle::aimle(topk(3));
  options.nb_samples = 2;
  Layer whole(options), left(options), right(options);
  left.defer_updates();
  right.defer_updates();
  right.defer_updates();  // again: nothing
  for (int64_t step = 0; step < 5; ++step) {
    const at::Tensor theta = leaf({7, 10}, step), weights = at::randn({7, 2, 10});
    const auto key = [&](int64_t first) {
      return at::tensor({int64_t{5}, step, first}, at::kLong);
    };
    const at::Tensor all = whole(theta, {.key = key(0)});
    all.backward(weights);
    const auto part = [&](Layer& layer, int64_t first, int64_t count) {
      const at::Tensor own = theta.detach().narrow(0, first, count).requires_grad_(true);
      const at::Tensor z = layer(own, {.key = key(first)});
      EXPECT_TRUE(z.equal(all.narrow(0, first, count)));
      z.backward(weights.narrow(0, first, count));
      EXPECT_TRUE(own.grad().equal(theta.grad().narrow(0, first, count)));
      EXPECT_EQ(layer.state().at("updates").item<int64_t>(), step);
      return layer.waiting_counts();
    };
    const at::Tensor sum = part(left, 0, 4) + part(right, 4, 3);
    for (Layer* layer : {&left, &right}) {
      layer->apply_counts(sum);
      EXPECT_TRUE(layer->waiting_counts().eq(0).all().item<bool>());
      for (const auto& [name, tensor] : whole.state()) {
        EXPECT_TRUE(layer->state().at(name).equal(tensor)) << name;
      }
    }
  }
  EXPECT_FALSE(whole.waiting_counts().defined());
  Layer stateless(ste(topk(3)));
  stateless.defer_updates();
  EXPECT_FALSE(stateless.waiting_counts().defined());
}

TEST(Layer, EvalModeIsTheNoiseFreeSolutionAndTheStateRests) {
  Layer layer(aimle::aimle(argmax()));
  layer.train(false);
  const at::Tensor theta = leaf({6, 9});
  const at::Tensor z = layer(theta);
  EXPECT_TRUE(z.squeeze(1).argmax(-1).equal(theta.argmax(-1)));
  z.sum().backward();
  EXPECT_EQ(layer.state().at("updates").item<int64_t>(), 0);
}

TEST(Layer, BlackboxDifferentiationIsTheFormulaOfItsPaper) {
  const double lambda = 20.0;
  const Layer layer(dbb(grid_path(), lambda));
  const at::Tensor costs = leaf({3, 4, 4}).detach().abs().requires_grad_(true);
  const at::Tensor z = layer(costs);
  at::manual_seed(2);
  const at::Tensor dy = at::randn(z.sizes());
  z.backward(dy);
  const at::Tensor moved = layer((costs + lambda * dy).detach());
  EXPECT_TRUE(costs.grad().allclose((moved - z.detach()) / lambda));
}

TEST(Layer, StraightThroughPassesTheGradientOn) {
  const Layer layer(ste(topk(2)));
  const at::Tensor theta = leaf({3, 5});
  layer(theta).sum().backward();
  EXPECT_TRUE(theta.grad().eq(1).all().item<bool>());
}

TEST(Layer, ThresholdsFavourTheEntryThatGainsAndSumToZero) {
  const Layer layer(thresholds(argmax(), NoiseKind::kLogistic));
  const at::Tensor theta = at::tensor({0.5, -0.25}, at::kDouble).requires_grad_(true);
  const at::Tensor z = layer(theta, {.key = a_key()});
  z.backward(at::tensor({3.0, 1.0}, at::kDouble).view({1, 2}));
  const double sum = theta.grad().sum().item<double>();
  EXPECT_NEAR(sum, 0.0, 1e-12);
  EXPECT_GT(theta.grad()[0].item<double>(), 0.0);
  EXPECT_EQ(layer.stats().at("capped_share").item<double>(), 0.0);
  EXPECT_FALSE(layer.stats().contains("lambda_mean"));
  EXPECT_TRUE(layer.state().empty());
  EXPECT_THROW(
      Layer(thresholds(grid_path()))(at::rand({3, 3}, at::requires_grad())).sum().backward(),
      c10::Error);
}

TEST(Layer, GridPathsAreOfCosts) {
  LayerOptions options = aimle(grid_path());
  options.sense = Sense::kMax;
  EXPECT_THROW(Layer{options}, c10::ValueError);
  options.sense = Sense::kMin;
  EXPECT_NO_THROW(Layer{options});
}

TEST(Layer, IdentityIsStraightThroughAfterItsProjection) {
  const Layer layer(identity(topk(2)));
  const at::Tensor theta = leaf({3, 5});
  const at::Tensor projected = project(theta);
  EXPECT_TRUE(projected.square().sum(-1).allclose(at::ones({3})));
  const at::Tensor dy = at::arange(15, at::kFloat).view({3, 5});
  layer(projected).backward(dy);
  const at::Tensor copy = theta.detach().clone().requires_grad_(true);
  project(copy).backward(dy);
  EXPECT_TRUE(theta.grad().equal(copy.grad()));
  EXPECT_THROW(project(theta, Projection::kStd, 3), c10::ValueError);
}

TEST(Layer, AlphaStartsWhereItsRuleStarts) {
  const auto start = [](const AdaptiveTarget& target, std::optional<double> given = std::nullopt) {
    LayerOptions options = aimle::aimle(topk(3));
    options.target = target;
    options.initial_alpha = given;
    return Layer(options).state().at("alpha").item<double>();
  };
  EXPECT_EQ(start({}), 4.0);
  EXPECT_EQ(start({}, 0.5), 0.5);
  EXPECT_EQ(start(AdaptiveTarget::paper()), 0.0);
  EXPECT_EQ(start({.alpha_max = 2.0}), 2.0);
  EXPECT_EQ(start({.target_norm = 1.0, .alpha_min = 0.25, .alpha_max = 0.0}), 0.25);
  EXPECT_THROW(start({.alpha_min = 0.0}), c10::ValueError);
  EXPECT_THROW(start({.alpha_max = 1.0}, 1.5), c10::ValueError);
  EXPECT_THROW(start({}, -0.5), c10::ValueError);
}

TEST(Layer, CostsTakeLongForwardSteps) {
  const auto first = [](const at::Tensor& costs) { return at::zeros_like(costs); };
  const auto start = [](const LayerOptions& options) {
    return Layer(options).state().at("alpha").item<double>();
  };
  for (const SolverSpec& costs : {grid_path(), callable(first, Sense::kMin)}) {
    const LayerOptions options = aimle::aimle(costs);
    EXPECT_EQ(options.difference, Difference::kForward);
    EXPECT_EQ(start(options), AdaptiveTarget::kLargestAlphaOfCosts);
    EXPECT_EQ(default_target(costs, Difference::kCentral).alpha_max, AdaptiveTarget{}.alpha_max);
  }
  for (const SolverSpec& scores : {topk(3), callable(first)}) {
    const LayerOptions options = aimle::aimle(scores);
    EXPECT_EQ(options.difference, Difference::kCentral);
    EXPECT_EQ(start(options), AdaptiveTarget{}.alpha_max);
    EXPECT_EQ(default_target(scores, Difference::kForward).alpha_max, AdaptiveTarget{}.alpha_max);
  }
}

TEST(Layer, RefusesWhatItCannotDo) {
  LayerOptions options = aimle::aimle(topk(3));
  options.output = "median";
  EXPECT_THROW(Layer{options}(leaf({2, 5})), c10::ValueError);
  EXPECT_THROW(Layer(imle(topk(3), -1.0))(leaf({2, 5})), c10::ValueError);
  EXPECT_THROW(Layer(aimle::aimle(topk(7)))(leaf({2, 5})), c10::ValueError);
}

struct LayerNet : torch::nn::Module {
  LayerModule choose = register_module("choose", LayerModule(aimle::aimle(topk(2))));
};

struct NetOfFunction : torch::nn::Module {
  LayerModule choose = register_module(
      "choose", LayerModule(aimle::aimle(callable([](auto& x) { return solve(topk(2), x); }))));
};

TEST(Module, StatesWithoutSizesLoad) {
  LayerNet net;
  net.choose->forward(leaf({4, 6})).square().sum().backward();
  std::stringstream file;
  torch::serialize::OutputArchive out;
  net.save(out);
  out.save_to(file);
  NetOfFunction resumed;
  torch::serialize::InputArchive in;
  in.load_from(file);
  resumed.load(in);
  EXPECT_EQ(resumed.choose->layer().state().at("updates").item<int64_t>(), 1);
  EXPECT_TRUE(resumed.choose->layer().state().at("sizes").isinf().all().item<bool>());
}

TEST(Module, StateIsSavedSwitchedAndKeepsItsType) {
  LayerNet net;
  for (int i = 0; i < 3; ++i) {
    const at::Tensor z = net.choose->forward(leaf({4, 6}, i));
    z.backward(at::randn(z.sizes()));
  }
  EXPECT_EQ(net.choose->layer().state().at("updates").item<int64_t>(), 3);
  net.to(at::kHalf);
  EXPECT_EQ(net.named_buffers()["choose.alpha"].scalar_type(), at::kDouble);

  std::stringstream file;
  torch::serialize::OutputArchive out;
  net.save(out);
  out.save_to(file);
  LayerNet resumed;
  torch::serialize::InputArchive in;
  in.load_from(file);
  resumed.load(in);
  for (const char* name : {"alpha", "gbar", "updates"}) {
    EXPECT_TRUE(
        resumed.choose->layer().state().at(name).equal(net.choose->layer().state().at(name)))
        << name;
  }
  resumed.eval();
  EXPECT_FALSE(resumed.choose->layer().is_training());
}

TEST(LayerTest, NoiseSuitsTheStructureUnlessItIsGiven) {
  const auto noise_of = [](const LayerOptions& options) {
    const Layer layer(options);
    return std::pair(layer.options().noise->kind, *layer.options().theta_noise_temperature);
  };
  EXPECT_EQ(noise_of(imle(topk(3), 1.0)), std::pair(NoiseKind::kGumbel, 1.0));
  EXPECT_EQ(noise_of(imle(grid_path(), 1.0)), std::pair(NoiseKind::kNormal, kCostTemperature));
  LayerOptions given = imle(grid_path(), 1.0);
  given.noise = NoiseSpec{.kind = NoiseKind::kGumbel};
  given.theta_noise_temperature = 2.0;
  EXPECT_EQ(noise_of(given), std::pair(NoiseKind::kGumbel, 2.0));
  LayerOptions papers = aimle::aimle(grid_path());
  papers.target = AdaptiveTarget{.scale = AdaptiveTarget::Scale::kTheta,
                                 .rule = AdaptiveTarget::Rule::kAdditive};
  EXPECT_EQ(noise_of(papers), std::pair(NoiseKind::kGumbel, 1.0));
}

TEST(LayerTest, CentredNoiseIsAConstantApart) {
  // Costs so large that nothing is clipped: a constant in every cell is the mean of the noise.
  const at::Tensor costs = at::arange(100, at::kDouble).mul(0.37).sin().view({4, 5, 5}) + 20.0;
  const at::Tensor key = at::tensor({3, 4}, at::kLong);
  LayerOptions options = imle(grid_path(), 1.0);
  options.noise = NoiseSpec{.kind = NoiseKind::kGumbel};
  const Layer centred(options);
  options.noise->centred = false;
  const Layer raw(options);
  const double shift = kCostTemperature * moments(NoiseKind::kGumbel).mean;
  EXPECT_TRUE(at::equal(centred(costs, {.key = key}), raw(costs + shift, {.key = key})));
  const at::Tensor theta = costs.detach().clone().requires_grad_();
  centred(theta, {.key = key}).sum().backward();
  EXPECT_EQ(centred.stats().at("clipped_share").item<double>(), 0.0);
  EXPECT_FALSE(Layer(imle(topk(3), 1.0)).stats().contains("clipped_share"));
  options = imle(topk(2), 1.0);
  options.noise = NoiseSpec{.kind = NoiseKind::kGumbel, .centred = true};
  const Layer one_size(options);
  EXPECT_THROW(one_size(costs, {.key = key}), c10::ValueError);
}

}  // namespace
}  // namespace aimle
