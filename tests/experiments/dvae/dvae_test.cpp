#include "experiments/dvae/dvae.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "experiments/dvae/losses.h"
#include "experiments/engine/checkpoint.h"
#include "experiments/engine/randomness.h"
#include "experiments/process/failure.h"

namespace aimle::experiments::dvae {
namespace {

Settings small(const std::string& method, int64_t k) {
  Settings settings = default_settings(experiment());
  const std::map<std::string, std::string> values = {
      {"method", method},      {"k", std::to_string(k)}, {"examples", "120"},
      {"test_examples", "20"}, {"validation", "20"},     {"batch", "20"},
  };
  for (const auto& [name, value] : values) settings.set(name, value, Origin::kUser);
  settings.set("nb_samples", std::string("3"), Origin::kPreset);
  return settings;
}

/// Losses of the steps first ... last - 1.
std::vector<double> losses(const Training& training, int64_t first, int64_t last) {
  std::vector<double> result;
  for (int64_t step = first; step < last; ++step) {
    const at::Tensor order = epoch_order(0, step / 5, training.examples, at::kCPU);
    const Scalars scalars =
        training.step({.rows = order.narrow(0, step % 5 * 20, 20),
                       .key = noise_keys(0, Purpose::kTrain, step, 1, at::kCPU)[0],
                       .step = step});
    result.push_back(scalars.at(0).second.item<double>());
  }
  return result;
}

Checkpoint saved(const Training& training) {
  Checkpoint checkpoint;
  for (const auto& [name, tensor] : training.model) {
    checkpoint.groups["model"][name] = tensor.detach().clone();
  }
  for (const auto& [name, tensor] : training.state) {
    checkpoint.groups["state"][name] = tensor.detach().clone();
  }
  return checkpoint;
}

struct Method {
  std::string name;
  int64_t k;
};

class EveryMethod : public testing::TestWithParam<Method> {
 protected:
  void SetUp() override { at::set_num_threads(1); }  // small matrices: others would only wait
};

// It learns, and what is saved is all there is to a run: restored, it takes the same steps.
TEST_P(EveryMethod, LearnsAndContinuesBitForBit) {
  const Settings settings = small(GetParam().name, GetParam().k);
  const Start start = experiment().load(settings);
  at::manual_seed(1);
  const Training training = start(settings);
  const std::vector<double> begin = losses(training, 0, 12);
  EXPECT_LT(begin.back(), 0.8 * begin.front());

  const Checkpoint checkpoint = saved(training);
  const std::vector<double> expected = losses(training, 12, 16);
  at::manual_seed(2);
  const Training again = start(settings);
  restore(again.model, checkpoint, "model");
  restore(again.state, checkpoint, "state");
  EXPECT_EQ(losses(again, 12, 16), expected);

  const at::Tensor key = noise_keys(0, Purpose::kEvaluate, 0, 1, at::kCPU)[0];
  for (const auto& [name, value] : training.evaluate(key)) EXPECT_TRUE(value > 0) << name;
  EXPECT_EQ(training.evaluate(key), again.evaluate(key));
}

INSTANTIATE_TEST_SUITE_P(Dvae, EveryMethod,
                         testing::ValuesIn(std::vector<Method>{
                             {"aimle", 10},
                             {"aimle", 1},
                             {"aimle_forward", 10},
                             {"aimle_noise", 10},
                             {"imle", 10},
                             {"imle_central", 1},
                             {"ste", 10},
                             {"sfe", 10},
                             {"sfe", 1},
                             {"gumbel_softmax", 1},
                             {"softsub", 10},
                             {"sst", 10},
                             {"l2x", 10},
                             {"exact", 10},
                             {"exact", 1},
                             {"thresholds", 10},
                             {"thresholds", 1},
                             {"aimle_covariance", 10},
                         }),
                         [](const auto& test) {
                           return test.param.name + "_k" + std::to_string(test.param.k);
                         });

TEST(Dvae, RefusesAMethodThatDoesNotApply) {
  const Settings settings = small("gumbel_softmax", 10);
  const Start start = experiment().load(settings);
  EXPECT_THROW(start(settings), Misuse);
}

TEST(Dvae, LossIsBinaryCrossEntropyAndKl) {
  at::manual_seed(0);
  const at::Tensor logits = at::randn({4, 3, 7}, at::kDouble) * 5,
                   x = at::rand({4, 7}, at::kDouble);
  const at::Tensor p = logits.sigmoid(), target = x.unsqueeze(1);
  const at::Tensor plain = -(target * p.log() + (1 - target) * (1 - p).log()).sum(-1);
  EXPECT_LT((reconstruction_loss(logits, x) - plain).abs().max().item<double>(), 1e-9);
  // A uniform code tells nothing; a certain one tells ln n a row.
  EXPECT_NEAR(softmax_kl(at::zeros({1, 5, 20}))[0].item<double>(), 0, 1e-5);
  EXPECT_NEAR(softmax_kl(1e4 * at::eye(20).narrow(0, 0, 5).unsqueeze(0))[0].item<double>(),
              5 * std::log(20.0), 1e-4);
}

TEST(Dvae, LossesHaveTheGradientsOfTheirFormulas) {
  at::manual_seed(0);
  const auto expect_gradient = [](const auto& loss, const auto& plain, const at::Tensor& at) {
    const at::Tensor a = at.clone().requires_grad_(true), b = at.clone().requires_grad_(true);
    const at::Tensor value = loss(a);
    const at::Tensor weights = at::arange(value.numel(), value.options()).view_as(value) + 1;
    (value * weights).sum().backward();
    (plain(b) * weights).sum().backward();
    EXPECT_LT((a.grad() - b.grad()).abs().max().template item<double>(), 1e-9);
  };
  const at::Tensor x = at::rand({4, 7}, at::kDouble), target = x.unsqueeze(1);
  expect_gradient(
      [&](const at::Tensor& logits) { return reconstruction_loss(logits, x); },
      [&](const at::Tensor& logits) { return (at::softplus(logits) - target * logits).sum(-1); },
      at::randn({4, 3, 7}, at::kDouble) * 5);
  expect_gradient([](const at::Tensor& theta) { return softmax_kl(theta); },
                  [](const at::Tensor& theta) {
                    const at::Tensor q = theta.softmax(-1);
                    return (q * (q.log() + std::log(6.0))).sum({1, 2});
                  },
                  at::randn({4, 5, 6}, at::kDouble) * 3);
}

/// Objective, BCE, means, and the gradients for logits and theta.
std::vector<at::Tensor> training_loss_of(const at::Tensor& logits, const at::Tensor& x,
                                         const at::Tensor& theta) {
  const Batch batch = {.share = 0.25};
  const at::Tensor a = logits.clone().requires_grad_(true), b = theta.clone().requires_grad_(true);
  const TrainingLoss loss = training_loss(batch, a, x, b, 0.7);
  EXPECT_FALSE(loss.bce.requires_grad() || loss.means.requires_grad());
  (loss.objective * 3).backward();
  return {loss.objective.detach(), loss.bce, loss.means, a.grad(), b.grad()};
}

TEST(Dvae, TrainingLossIsTheWeightedSumOfBothLosses) {
  at::manual_seed(0);
  const at::Tensor logits = at::randn({4, 3, 7}, at::kDouble), x = at::rand({4, 7}, at::kDouble);
  const at::Tensor theta = at::randn({4, 5, 6}, at::kDouble);
  const at::Tensor a = logits.clone().requires_grad_(true), b = theta.clone().requires_grad_(true);
  const at::Tensor bce = reconstruction_loss(a, x), kl = softmax_kl(b);
  const at::Tensor objective = (bce.sum() + 0.7 * kl.sum()) / 4 * 0.25;
  (objective * 3).backward();
  const at::Tensor means = at::stack({bce.mean() + kl.mean() / 3, bce.mean(), kl.mean()});
  const std::vector<at::Tensor> expected = {objective, bce, means, a.grad(), b.grad()};
  const std::vector<at::Tensor> found = training_loss_of(logits, x, theta);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LT((found[i] - expected[i]).abs().max().item<double>(), 1e-12) << i;
  }
}

TEST(DvaeOnDevice, LossesAreThoseOfTheCpu) {
  if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no GPU";
  at::manual_seed(0);
  const at::Tensor logits = at::randn({100, 10, 784}) * 3, x = at::rand({100, 784});
  const at::Tensor theta = at::randn({100, 20, 20}) * 3;
  const std::vector<at::Tensor> found = training_loss_of(logits.cuda(), x.cuda(), theta.cuda());
  const std::vector<at::Tensor> expected =
      training_loss_of(logits.to(at::kDouble), x.to(at::kDouble), theta.to(at::kDouble));
  for (size_t i = 0; i < expected.size(); ++i) {
    const double scale = expected[i].abs().max().item<double>();
    EXPECT_LT((found[i].cpu() - expected[i]).abs().max().item<double>(), 1e-5 * scale) << i;
  }
  const at::Tensor bce = reconstruction_loss(logits.cuda(), x.cuda());
  EXPECT_TRUE(at::equal(bce, found[1]));
}

/// The GPU evaluates all of these images together, the CPU 500 of them at a time: the noise of an
/// image depends on neither.
TEST(DvaeOnDevice, EvaluationIsThatOfTheCpu) {
  if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no GPU";
  std::vector<Metrics> metrics;
  for (const char* device : {"cpu", "cuda"}) {
    Settings settings = small("aimle", 10);
    settings.set("test_examples", std::string("600"), Origin::kUser);
    settings.set("device", std::string(device), Origin::kUser);
    const at::Tensor key = noise_keys(0, Purpose::kEvaluate, 0, 1, at::Device(device))[0];
    at::manual_seed(1);
    metrics.push_back(experiment().load(settings)(settings).evaluate(key));
  }
  ASSERT_EQ(metrics[0].size(), metrics[1].size());
  for (size_t i = 0; i < metrics[0].size(); ++i) {
    const auto& [name, expected] = metrics[0][i];
    EXPECT_NEAR(metrics[1][i].second, expected, 1e-4 * expected) << name;
  }
}

// Untrained, every pixel is a coin: 784 ln 2, nearly.
TEST(Dvae, StartsAtTheLossOfACoin) {
  const Settings settings = small("aimle", 10);
  at::manual_seed(0);
  const Training training = experiment().load(settings)(settings);
  EXPECT_NEAR(losses(training, 0, 1)[0], 784 * std::log(2.0), 100);
}

}  // namespace
}  // namespace aimle::experiments::dvae
