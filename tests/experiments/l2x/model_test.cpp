#include "experiments/l2x/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace aimle::experiments::l2x {
namespace {

constexpr int64_t kDims = 6, kHidden = 5, kBatch = 3, kLength = 9;

// conv 3 with zeros beyond both ends, written out: x [B, L, in].
at::Tensor plain_convolution(const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& bias) {
  const int64_t length = x.size(1), width = weight.size(2);
  at::Tensor out = bias.expand({x.size(0), length, -1}).clone();
  for (int64_t t = 0; t < length; ++t) {
    for (int64_t w = 0; w < width; ++w) {
      const int64_t at = t + w - width / 2;
      if (at < 0 || at >= length) continue;
      out.select(1, t) += at::linear(x.select(1, at), weight.select(2, w));
    }
  }
  return out;
}

at::Tensor plain_selector(const Selector& selector, const at::Tensor& vectors) {
  std::map<std::string, at::Tensor> named;
  for (const auto& entry : selector->named_parameters()) named[entry.key()] = entry.value();
  const auto conv = [&](const std::string& name, const at::Tensor& x) {
    return plain_convolution(x, named.at(name + ".weight"), named.at(name + ".bias"));
  };
  const at::Tensor f = conv("words", vectors).relu();
  const at::Tensor global =
      at::linear(std::get<0>(f.max(1)), named.at("global.weight"), named.at("global.bias")).relu();
  const at::Tensor local = conv("local1", conv("local0", f).relu()).relu();
  const at::Tensor both = at::cat({global.unsqueeze(1).expand({-1, f.size(1), -1}), local}, -1);
  return conv("score", conv("join", both).relu()).squeeze(-1);
}

TEST(L2xModel, SelectorIsTheOneOfThePlainFormula) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    at::manual_seed(seed);
    const at::NoGradGuard no_grad;
    Selector selector(kDims, kHidden);
    for (auto& parameter : selector->parameters()) parameter.normal_(0.0, 0.5);
    const at::Tensor vectors = at::randn({kBatch, kLength, kDims});
    const at::Tensor scores = selector(vectors, std::nullopt, std::nullopt);
    EXPECT_TRUE(at::allclose(scores, plain_selector(selector, vectors), 1e-4, 1e-5));
  }
}

TEST(L2xModel, MaskedScoresDoNotDependOnThePadding) {
  at::manual_seed(1);
  const at::NoGradGuard no_grad;
  Selector selector(kDims, kHidden);
  for (auto& parameter : selector->parameters()) parameter.normal_(0.0, 0.5);
  const at::Tensor vectors = at::randn({kBatch, kLength, kDims});
  const at::Tensor alone = selector(vectors, std::nullopt, std::nullopt);
  for (const auto& [front, back] : {std::pair(4, 0), std::pair(0, 7), std::pair(3, 2)}) {
    // What stands in the padding must not matter either; index 0 of a word table is all zeros.
    const at::Tensor padded = at::constant_pad_nd(vectors, {0, 0, front, back});
    const at::Tensor mask = at::constant_pad_nd(at::ones({kBatch, kLength}), {front, back}).gt(0);
    const at::Tensor scores = selector(padded, mask, std::nullopt).narrow(1, front, kLength);
    EXPECT_TRUE(at::allclose(scores, alone, 1e-4, 1e-5)) << front << " " << back;
    const at::Tensor unmasked = selector(padded, std::nullopt, std::nullopt);
    EXPECT_FALSE(at::allclose(unmasked.narrow(1, front, kLength), alone, 1e-4, 1e-5));
  }
}

TEST(L2xModel, DropoutIsAFunctionOfItsKey) {
  at::manual_seed(2);
  const at::NoGradGuard no_grad;
  Selector selector(kDims, kHidden);
  const at::Tensor vectors = at::randn({kBatch, kLength, kDims});
  const auto scores = [&](int64_t key) {
    return selector(vectors, std::nullopt, at::tensor({key, int64_t{0}}));
  };
  EXPECT_TRUE(at::equal(scores(5), scores(5)));
  EXPECT_FALSE(at::equal(scores(5), scores(6)));
}

/// The scores, and the gradients of all parameters and of the vectors.
std::vector<at::Tensor> scores_and_gradients(Selector selector, at::Tensor vectors,
                                             const std::optional<at::Tensor>& mask,
                                             const at::Tensor& key) {
  vectors.requires_grad_();
  const at::Tensor scores = selector(vectors, mask, key);
  scores.square().sum().backward();
  std::vector<at::Tensor> result = {scores.detach(), vectors.grad()};
  for (const auto& parameter : selector->parameters()) result.push_back(parameter.grad().clone());
  for (auto& parameter : selector->parameters()) parameter.mutable_grad().reset();
  return result;
}

TEST(L2xModelOnDevice, SelectorHasTheGradientsOfTheCpu) {
  if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no GPU";
  for (const auto& [length, hidden] : {std::pair(1, 4), std::pair(2, 8), std::pair(37, 36)}) {
    for (const bool masked : {false, true}) {
      SCOPED_TRACE(std::to_string(length) + " words, masked " + std::to_string(masked));
      at::manual_seed(5);
      Selector selector(kDims, hidden);
      selector->to(at::kDouble);
      const at::Tensor vectors = at::randn({kBatch, length, kDims}, at::kDouble);
      const at::Tensor key = at::tensor({int64_t{5}, int64_t{0}});
      std::optional<at::Tensor> mask;
      if (masked)
        mask = at::arange(length).lt(at::tensor({length, 1, length / 2 + 1}).unsqueeze(1));
      const auto expected = scores_and_gradients(selector, vectors.clone(), mask, key);
      selector->to(at::kCUDA, at::kFloat);
      if (masked) mask = mask->to(at::kCUDA);
      const auto found = scores_and_gradients(selector, vectors.to(at::kCUDA, at::kFloat), mask,
                                              key.to(at::kCUDA));
      for (size_t i = 0; i < expected.size(); ++i) {
        const double scale = 1 + expected[i].abs().max().item<double>();
        EXPECT_LT((found[i].cpu() - expected[i]).abs().max().item<double>(), 1e-4 * scale) << i;
      }
    }
  }
}

TEST(L2xModel, PredictorSeesTheMeanOfTheChosenWordsOnly) {
  at::manual_seed(3);
  const at::NoGradGuard no_grad;
  Predictor predictor(kDims, kHidden);
  const at::Tensor vectors = at::randn({kBatch, kLength, kDims});
  at::Tensor chosen = at::zeros({kBatch, 2, kLength});
  chosen.select(1, 0).narrow(1, 2, 3).fill_(1.0);
  chosen.select(1, 1).narrow(1, 6, 3).fill_(1.0);
  const at::Tensor ratings = predictor(vectors, chosen, at::full({kBatch}, 3.0));
  const auto parameters = predictor->named_parameters();
  for (const auto& [sample, first] : {std::pair(0, 2), std::pair(1, 6)}) {
    const at::Tensor mean = vectors.narrow(1, first, 3).mean(1);
    const at::Tensor hidden =
        at::linear(mean, parameters["hidden.weight"], parameters["hidden.bias"]).relu();
    const at::Tensor expected =
        at::linear(hidden, parameters["out.weight"], parameters["out.bias"]).sigmoid().squeeze(-1);
    EXPECT_TRUE(at::allclose(ratings.select(1, sample), expected, 1e-5, 1e-6));
  }
}

TEST(L2xModel, StartsFromXavierUniform) {
  at::manual_seed(4);
  const L2xModel model(200);
  for (const auto& entry : model->named_parameters()) {
    const at::Tensor& value = entry.value();
    if (value.dim() == 1) {
      EXPECT_EQ(value.abs().max().item<double>(), 0.0) << entry.key();
      continue;
    }
    const auto width = static_cast<double>(value.dim() == 3 ? value.size(2) : 1);
    const double fans = width * static_cast<double>(value.size(0) + value.size(1));
    const double bound = std::sqrt(2.0) * std::sqrt(6.0 / fans);
    const double largest = value.abs().max().item<double>();
    EXPECT_LE(largest, bound * (1 + 1e-6)) << entry.key();
    EXPECT_GE(largest, bound * (value.numel() > 1000 ? 0.99 : 0.7)) << entry.key();
  }
}

}  // namespace
}  // namespace aimle::experiments::l2x
