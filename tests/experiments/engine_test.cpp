// The engine's parts; tests/python/train/test_train.py tests it as a whole.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "experiments/data/digits.h"
#include "experiments/engine/adam.h"
#include "experiments/engine/campaign.h"
#include "experiments/engine/experiment.h"
#include "experiments/engine/randomness.h"
#include "experiments/run/failure.h"

namespace aimle::experiments {
namespace {

std::string complaint(const std::function<void()>& act) {
  try {
    act();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

TEST(Options, TakeTheTypeOfTheirDefault) {
  const Option whole = {.name = "k", .value = 3, .low = 1, .high = 9};
  EXPECT_EQ(whole.parse("7"), Json(7));
  EXPECT_EQ(complaint([&] { whole.parse("1.5"); }),
            "expected a whole number >= 1 and <= 9 but got '1.5'");
  EXPECT_NE(complaint([&] { whole.parse("10"); }), "");
  const Option number = {.name = "lr", .value = 0.5};
  EXPECT_EQ(number.parse("1e-3"), Json(1e-3));
  EXPECT_EQ(complaint([&] { number.parse("nan"); }), "expected a number but got 'nan'");
  const Option text = {.name = "noise", .value = "", .verify = [](const std::string& given) {
                         if (given != "gumbel") throw Failure("no noise '" + given + "'");
                       }};
  EXPECT_EQ(text.parse("gumbel"), Json("gumbel"));
  EXPECT_EQ(text.parse(""), Json(""));
  EXPECT_EQ(complaint([&] { Settings({text}).set("noise", Json("pink"), Origin::kUser); }),
            "option noise: no noise 'pink'");
  const Option flag = {.name = "hard", .value = false};
  EXPECT_EQ(flag.parse("true"), Json(true));
  const Option choice = {.name = "device", .value = "cpu", .choices = {"cpu", "cuda"}};
  EXPECT_NE(complaint([&] { choice.parse("cuba"); }).find("did you mean 'cuda'"),
            std::string::npos);
}

TEST(Options, LaterOriginsPrevail) {
  Settings settings({{.name = "k", .value = 3}, {.name = "lr", .value = 0.5}});
  settings.apply(Preset{.name = "paper", .values = {{"k", 5}, {"lr", 2}}});
  EXPECT_EQ(settings.get<int64_t>("k"), 5);
  EXPECT_EQ(settings.get<double>("lr"), 2.0);
  settings.set("k", std::string("8"), Origin::kUser);
  EXPECT_EQ(settings.get<int64_t>("k"), 8);
  EXPECT_EQ(settings.origin("k"), Origin::kUser);
  EXPECT_EQ(settings.origin("lr"), Origin::kPreset);
  Settings copy({{.name = "k", .value = 3}, {.name = "lr", .value = 0.5}});
  copy.apply(settings.to_json());
  EXPECT_EQ(copy.to_json(), settings.to_json());
  EXPECT_NE(
      complaint([&] { settings.set("lt", Json(1.0), Origin::kUser); }).find("did you mean 'lr'"),
      std::string::npos);
}

// Every preset and default of every experiment names options that exist, with values they allow.
TEST(Experiments, DeclareConsistentOptions) {
  for (const Experiment& experiment : experiments()) {
    const Settings defaults = default_settings(experiment);
    std::set<std::string> names;
    for (const Option& option : defaults.options()) {
      EXPECT_TRUE(names.insert(option.name).second) << experiment.name << " " << option.name;
      EXPECT_FALSE(option.help.empty()) << option.name;
      EXPECT_EQ(option.check(option.value), option.value) << option.name;
    }
    for (const auto& [name, value] : experiment.defaults) {
      EXPECT_EQ(defaults.get<Json>(name), value) << experiment.name << " " << name;
    }
    for (const Preset& preset : experiment.presets) {
      Settings settings = defaults;
      settings.apply(preset);
    }
  }
}

TEST(Seeds, AreNumbersAndRanges) {
  EXPECT_EQ(parse_seeds("0-3"), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(parse_seeds("4,1-2,1"), (std::vector<int64_t>{4, 1, 2}));
  for (const char* wrong : {"", "a", "3-1", "1-", "-2", "1,,2", "1,", ",", "0-99999"}) {
    EXPECT_THROW(parse_seeds(wrong), Failure) << wrong;
  }
}

TEST(Seeds, MayBeTheLargestNumbers) {
  EXPECT_EQ(parse_seeds("9223372036854775807"), (std::vector<int64_t>{9223372036854775807}));
  EXPECT_EQ(parse_seeds("9223372036854775806-9223372036854775807").size(), 2);
}

TEST(Seeds, AreAtMostTenThousandInAll) {
  EXPECT_EQ(parse_seeds("0-4999,5000-9999,0-9999").size(), 10000);
  EXPECT_THROW(parse_seeds("0-9999,10000"), Failure);
}

TEST(Grid, VariesOptionsOfTheExperiment) {
  const Settings settings = default_settings(experiment("dvae"));
  EXPECT_EQ(parse_grid_axis("kl-weight=1,2", settings).option, "kl_weight");
  EXPECT_EQ(parse_grid_axis("kl_weight=1,2", settings).values,
            (std::vector<std::string>{"1", "2"}));
  for (const char* wrong : {"", "lambda", "=1", "lambda=", "lamda=1", "kl_weight=1,x", "epochs=0",
                            "data=a,b", "device=cpu", "seed=1,2", "lr=1,", "lr=,"}) {
    EXPECT_THROW(parse_grid_axis(wrong, settings), Failure) << wrong;
  }
}

TEST(Grid, TriesNoValueTwice) {
  const Settings settings = default_settings(experiment("dvae"));
  for (const char* wrong : {"lr=0.1,0.1", "lr=0.1,0.2,1e-1", "method=ste,aimle,ste"}) {
    EXPECT_THROW(parse_grid_axis(wrong, settings), Failure) << wrong;
  }
}

TEST(Randomness, AnEpochVisitsEveryExampleOnce) {
  for (const int64_t examples : {1, 2, 7, 1000}) {
    const at::Tensor order = epoch_order(3, 5, examples, at::kCPU);
    EXPECT_TRUE(std::get<0>(order.sort()).equal(at::arange(examples))) << examples;
    EXPECT_TRUE(order.equal(epoch_order(3, 5, examples, at::kCPU)));
  }
  EXPECT_FALSE(epoch_order(3, 5, 1000, at::kCPU).equal(epoch_order(3, 6, 1000, at::kCPU)));
  EXPECT_FALSE(epoch_order(3, 5, 1000, at::kCPU).equal(epoch_order(4, 5, 1000, at::kCPU)));
}

// The place of an example is uniform: each of n places is met trials / n times, within five
// standard deviations of the binomial.
TEST(Randomness, OrdersAreUniform) {
  constexpr int64_t kExamples = 8, kTrials = 4000;
  at::Tensor met = at::zeros({kExamples, kExamples});
  for (int64_t epoch = 0; epoch < kTrials; ++epoch) {
    const at::Tensor order = epoch_order(1, epoch, kExamples, at::kCPU);
    for (int64_t i = 0; i < kExamples; ++i) met[i][order[i].item<int64_t>()] += 1;
  }
  const double mean = static_cast<double>(kTrials) / kExamples;
  const double deviation = std::sqrt(mean * (1 - 1.0 / kExamples));
  EXPECT_LT((met - mean).abs().max().item<double>(), 5 * deviation);
}

TEST(Randomness, KeysDifferBySeedPurposeAndStep) {
  std::set<int64_t> seen;
  for (const int64_t seed : {0, 1}) {
    for (const Purpose purpose : {Purpose::kTrain, Purpose::kEvaluate}) {
      const at::Tensor keys = noise_keys(seed, purpose, 0, 100, at::kCPU);
      EXPECT_TRUE(keys.slice(0, 10, 20).equal(noise_keys(seed, purpose, 10, 10, at::kCPU)));
      for (int64_t i = 0; i < 100; ++i) seen.insert(keys[i][0].item<int64_t>());
    }
  }
  EXPECT_EQ(seen.size(), 400U);
}

TEST(Randomness, DropoutKeepsTheMeanAndRepeats) {
  const at::Tensor x = at::ones({100, 200});
  const at::Tensor key = noise_keys(0, Purpose::kTrain, 0, 1, at::kCPU)[0];
  const at::Tensor y = keyed_dropout(x, 0.2, key);
  EXPECT_TRUE(y.equal(keyed_dropout(x, 0.2, key)));
  EXPECT_FALSE(y.equal(keyed_dropout(x, 0.2, subkey(key, 1))));
  const double dropped = y.eq(0).to(at::kFloat).mean().item<double>();
  EXPECT_NEAR(dropped, 0.2, 5 * std::sqrt(0.16 / 20000));
  EXPECT_TRUE(y.ne(0).logical_and(y.ne(1.25)).any().item<bool>() == false);
}

TEST(AdamTest, IsTheFormulaOfItsPaper) {
  at::manual_seed(0);
  const at::Tensor parameter = at::randn({5, 3}).requires_grad_(true);
  Adam adam({{"w", parameter}}, {.lr = 0.01});
  at::Tensor expected = parameter.detach().to(at::kDouble);
  at::Tensor m = at::zeros_like(expected), v = at::zeros_like(expected);
  for (int t = 1; t <= 20; ++t) {
    const at::Tensor gradient = at::randn({5, 3});
    adam.zero_grad();
    parameter.mutable_grad() = gradient.clone();
    adam.step();
    const at::Tensor g = gradient.to(at::kDouble);
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    expected = expected -
               0.01 * (m / (1 - std::pow(0.9, t))) / ((v / (1 - std::pow(0.999, t))).sqrt() + 1e-8);
  }
  EXPECT_LT((parameter.detach() - expected).abs().max().item<double>(), 1e-5);
  EXPECT_EQ(adam.state().at("steps").item<float>(), 20.0F);
}

TEST(Digits, AreAFunctionOfSeedAndNumber) {
  const Images all = draw_digits(5, 0, 300);
  const Images part = draw_digits(5, 100, 50);
  EXPECT_TRUE(std::equal(part.pixels.begin(), part.pixels.end(), all.pixels.begin() + 100 * 784));
  EXPECT_NE(draw_digits(6, 0, 300).pixels, all.pixels);
}

// Golden values: the same digits on every machine.
TEST(Digits, AreTheSameEverywhere) {
  const Images images = draw_digits(0, 0, 1000);
  uint64_t hash = 0xcbf29ce484222325;
  for (const uint8_t pixel : images.pixels) hash = (hash ^ pixel) * 0x100000001b3;
  EXPECT_EQ(hash, 9522273441473856703U);
}

// A digit can be told from the others: the nearest mean image is that of its class far more often
// than one time in ten.
TEST(Digits, LookLikeTheirClasses) {
  const auto to_tensor = [](Images& images) {
    return at::from_blob(images.pixels.data(), {images.count, 784}, at::kByte).to(at::kFloat);
  };
  Images train = draw_digits(0, 0, 2000), test = draw_digits(1, 0, 500);
  const at::Tensor x = to_tensor(train), y = to_tensor(test);
  std::vector<at::Tensor> means;
  const at::Tensor labels = at::from_blob(train.labels.data(), {2000}, at::kByte);
  for (int c = 0; c < 10; ++c) {
    const at::Tensor own = x.index_select(0, labels.eq(c).nonzero().squeeze(1));
    EXPECT_NEAR(static_cast<double>(own.size(0)), 200, 5 * std::sqrt(180.0)) << c;
    means.push_back(own.mean(0));
  }
  const at::Tensor guess = at::cdist(y, at::stack(means)).argmin(1);
  const at::Tensor truth = at::from_blob(test.labels.data(), {500}, at::kByte);
  EXPECT_GT(guess.eq(truth).to(at::kFloat).mean().item<double>(), 0.7);
}

}  // namespace
}  // namespace aimle::experiments
