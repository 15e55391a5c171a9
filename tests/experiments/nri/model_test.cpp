#include "experiments/nri/model.h"

#include <gtest/gtest.h>
#include <torch/nn/functional.h>

#include <string>

#include "experiments/nri/scores.h"

namespace aimle::experiments::nri {
namespace {

constexpr int64_t kSize = 5, kFrames = 6, kHidden = 7, kPaths = 4;

struct Case {
  NriModel model{NriShape{.vertices = kSize, .frames = kFrames, .hidden = kHidden}};
  Wiring wiring{kSize, at::kCPU};
  at::Tensor paths = at::rand({kPaths, kSize, kFrames, 2}) * 2 - 1;
  std::map<std::string, at::Tensor> named;

  explicit Case(uint64_t seed) {
    at::manual_seed(seed);
    model = NriModel(NriShape{.vertices = kSize, .frames = kFrames, .hidden = kHidden});
    paths = at::rand({kPaths, kSize, kFrames, 2}) * 2 - 1;
    for (const auto& entry : model->named_parameters()) named[entry.key()] = entry.value().detach();
  }

  at::Tensor linear(const std::string& name, const at::Tensor& x) const {
    return at::linear(x, named.at(name + ".weight"), named.at(name + ".bias"));
  }

  // Rows as they come: batch norm by the batch, its weights still 1 and 0.
  at::Tensor block(const std::string& name, const at::Tensor& x) const {
    const at::Tensor y = at::elu(linear(name + ".second", at::elu(linear(name + ".first", x))));
    const at::Tensor rows = y.reshape({-1, kHidden});
    const at::Tensor normal =
        (rows - rows.mean(0)) / (rows.var(0, /*unbiased=*/false) + 1e-5).sqrt();
    return normal.view(y.sizes());
  }
};

// Links one after the other: receivers, and for each its senders in ascending order.
std::vector<std::pair<int64_t, int64_t>> links_in_order() {
  std::vector<std::pair<int64_t, int64_t>> links;
  for (int64_t r = 0; r < kSize; ++r) {
    for (int64_t s = 0; s < kSize; ++s) {
      if (s != r) links.emplace_back(r, s);
    }
  }
  return links;
}

at::Tensor concatenated(const at::Tensor& nodes) {
  std::vector<at::Tensor> rows;
  for (const auto& [r, s] : links_in_order()) {
    rows.push_back(at::cat({nodes.select(1, s), nodes.select(1, r)}, -1));
  }
  return at::stack(rows, 1);
}

at::Tensor summed_by_receiver(const at::Tensor& links) {
  at::Tensor nodes = at::zeros({links.size(0), kSize, links.size(2)});
  const auto order = links_in_order();
  for (size_t e = 0; e < order.size(); ++e) {
    nodes.select(1, order[e].first) += links.select(1, static_cast<int64_t>(e));
  }
  return nodes;
}

at::Tensor plain_encoder(const Case& test) {
  at::Tensor nodes = test.block("encoder.path", test.paths.flatten(2));
  const at::Tensor skip = test.block("encoder.first_link", concatenated(nodes));
  nodes = test.block("encoder.node", summed_by_receiver(skip) / static_cast<double>(kSize));
  const at::Tensor links = at::cat({concatenated(nodes), skip}, -1);
  return test.linear("encoder.score", test.block("encoder.second_link", links)).squeeze(-1);
}

at::Tensor plain_step(const Case& test, const at::Tensor& positions, const at::Tensor& links) {
  const at::Tensor pair = concatenated(positions);
  const auto message = [&](const std::string& type) {
    return test.linear("decoder." + type + "1", test.linear("decoder." + type + "0", pair).relu())
        .relu();
  };
  const at::Tensor z = links.unsqueeze(-1);
  const at::Tensor agg = summed_by_receiver(message("no_link") * (1 - z) + message("link") * z);
  const at::Tensor seen = at::cat({positions, agg}, -1);
  const at::Tensor hidden =
      test.linear("decoder.out1", test.linear("decoder.out0", seen).relu()).relu();
  return positions + test.linear("decoder.out2", hidden);
}

void expect_close(const at::Tensor& a, const at::Tensor& b, double tolerance) {
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_LE((a - b).abs().max().item<double>(), tolerance);
}

TEST(NriModel, EncoderIsTheOneOfThePlainFormula) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Case test(seed);
    const at::NoGradGuard no_grad;
    expect_close(test.model->encoder(test.paths, test.wiring), plain_encoder(test), 2e-4);
  }
}

/// Scores, the encoder's gradients of a loss that is linear in them, and its buffers.
std::map<std::string, at::Tensor> pass_encoder(Case& test, at::Device device, at::ScalarType type) {
  test.model->to(device);
  if (type != at::kFloat) test.model->to(type);
  const Wiring wiring(kSize, device, type);
  const at::Tensor scores = test.model->encoder(test.paths.to(device, type), wiring);
  (scores * at::arange(scores.size(1), scores.options()).sub_(7)).sum().backward();
  std::map<std::string, at::Tensor> result = {{"scores", scores.detach()}};
  for (const auto& entry : test.model->encoder->named_parameters()) {
    result[entry.key()] = entry.value().grad();
  }
  for (const auto& entry : test.model->encoder->named_buffers()) {
    result[entry.key()] = entry.value();
  }
  for (auto& [name, tensor] : result) tensor = tensor.to(at::kCPU, at::kDouble);
  return result;
}

TEST(NriModelOnDevice, EncoderHasTheGradientsOfTheCpu) {
  if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no GPU";
  for (uint64_t seed = 0; seed < 5; ++seed) {
    Case test(seed), same(seed);
    const auto expected = pass_encoder(same, at::kCPU, at::kDouble);
    for (const auto& [name, found] : pass_encoder(test, at::kCUDA, at::kFloat)) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + name);
      const at::Tensor& there = expected.at(name);
      expect_close(found, there, 1e-3 * there.abs().max().item<double>() + 1e-4);
    }
  }
}

TEST(NriModel, DecoderPredictsFromEveryStartAsAsked) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Case test(seed);
    const at::NoGradGuard no_grad;
    const at::Tensor links = at::rand({kPaths, 2, kSize * (kSize - 1)});
    for (const int64_t horizon : {1, 2, 3, 5}) {
      const at::Tensor predicted = test.model->decoder(test.paths, links, horizon, test.wiring);
      for (int64_t sample = 0; sample < 2; ++sample) {
        at::Tensor now;
        for (int64_t t = 0; t + 1 < kFrames; ++t) {
          if (t % horizon == 0) now = test.paths.select(2, t);
          now = plain_step(test, now, links.select(1, sample));
          expect_close(predicted.select(1, sample).select(2, t), now, 1e-5);
        }
      }
    }
  }
}

// Links of random trees, [kPaths, samples, n (n-1)]: vertex j > 0 hangs on an earlier one.
at::Tensor random_trees(int64_t samples) {
  at::Tensor links = at::zeros({kPaths, samples, kSize, kSize - 1});
  for (int64_t b = 0; b < kPaths; ++b) {
    for (int64_t s = 0; s < samples; ++s) {
      for (int64_t j = 1; j < kSize; ++j) {
        const int64_t i = at::randint(j, {1}).item<int64_t>();
        links[b][s][j][i] = 1.0;
        links[b][s][i][j - 1] = 1.0;
      }
    }
  }
  return links.flatten(2);
}

// The same weights, paths and trees in float64, so that no relu is on the other side of zero.
TEST(NriModel, TreesGoTheShorterWayToTheSameNumbers) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Case test(seed);
    test.model->to(at::kDouble);
    Wiring wiring(kSize, at::kCPU, at::kDouble);
    const at::Tensor paths = test.paths.to(at::kDouble);
    for (const int64_t horizon : {1, 2, 3, 5}) {
      SCOPED_TRACE("horizon " + std::to_string(horizon));
      const at::Tensor trees = random_trees(2).to(at::kDouble);
      std::vector<std::vector<at::Tensor>> seen;
      for (const Links kind : {Links::kAny, Links::kTrees}) {
        const at::Tensor links = trees.clone().requires_grad_();
        test.model->zero_grad();
        const at::Tensor predicted = test.model->decoder(paths, links, horizon, wiring, kind);
        at::manual_seed(seed);
        (predicted * at::randn_like(predicted)).sum().backward();
        seen.push_back({predicted.detach(), links.grad()});
        for (const auto& parameter : test.model->decoder->parameters()) {
          seen.back().push_back(parameter.grad().clone());
        }
        const at::NoGradGuard no_grad;
        expect_close(test.model->decoder(paths, links, horizon, wiring, kind), predicted, 1e-12);
      }
      for (size_t i = 0; i < seen[0].size(); ++i) {
        SCOPED_TRACE("tensor " + std::to_string(i));
        const double size = 1.0 + seen[0][i].abs().max().item<double>();
        expect_close(seen[1][i], seen[0][i], 1e-10 * size);
        EXPECT_GT(seen[0][i].abs().max().item<double>(), 0.0);
      }
    }
  }
}

TEST(NriModel, TreesWithTheWrongNumberOfLinksAreRefused) {
  Case test(0);
  const at::Tensor links = at::ones({kPaths, 1, kSize * (kSize - 1)});
  EXPECT_THROW(test.model->decoder(test.paths, links, 1, test.wiring, Links::kTrees), c10::Error);
}

// Predictions, and the gradients of the links and of all parameters.
std::vector<at::Tensor> decoded_trees(Decoder decoder, const at::Tensor& paths,
                                      const at::Tensor& trees, at::TensorOptions options) {
  decoder->to(options.device(), c10::typeMetaToScalarType(options.dtype()));
  decoder->zero_grad();
  const Wiring wiring(kSize, options.device(), c10::typeMetaToScalarType(options.dtype()));
  const at::Tensor links = trees.clone().to(options).requires_grad_();
  const at::Tensor predicted = decoder(paths.to(options), links, 3, wiring, Links::kTrees);
  (predicted * at::arange(predicted.numel(), options).cos().view(predicted.sizes()))
      .sum()
      .backward();
  std::vector<at::Tensor> result = {predicted.detach().cpu(), links.grad().cpu()};
  for (const auto& parameter : decoder->parameters()) result.push_back(parameter.grad().cpu());
  return result;
}

TEST(NriModelOnDevice, TreesAreThoseOfTheCpu) {
  if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no GPU";
  for (const int64_t hidden : {1, 7, 64, 300}) {
    SCOPED_TRACE("hidden " + std::to_string(hidden));
    at::manual_seed(hidden);
    Decoder decoder(hidden);
    const at::Tensor paths = at::rand({kPaths, kSize, kFrames, 2}) * 2 - 1;
    const at::Tensor trees = random_trees(2);
    const auto expected = decoded_trees(decoder, paths, trees, at::kDouble);
    const auto found = decoded_trees(decoder, paths, trees, at::device(at::kCUDA));
    const auto again = decoded_trees(decoder, paths, trees, at::device(at::kCUDA));
    for (size_t i = 0; i < expected.size(); ++i) {
      SCOPED_TRACE("tensor " + std::to_string(i));
      EXPECT_TRUE(at::equal(found[i], again[i]));
      const double size = 1e-3 + expected[i].abs().max().item<double>();
      expect_close(found[i].to(at::kDouble), expected[i], 1e-4 * size);
    }
  }
}

TEST(NriModel, StartsFromTheStatedValues) {
  at::manual_seed(3);
  const NriModel model(NriShape{.frames = 10, .hidden = 256});
  for (const auto& entry : model->named_parameters()) {
    const std::string& name = entry.key();
    const at::Tensor& value = entry.value();
    const bool norm = name.find(".norm.") != std::string::npos;
    if (norm || (name.find(".bias") != std::string::npos && name.starts_with("encoder"))) {
      const double expected = !norm ? 0.1 : name.ends_with("weight") ? 1.0 : 0.0;
      EXPECT_TRUE(at::allclose(value, at::full_like(value, expected))) << name;
    } else if (name.starts_with("encoder") && value.numel() > 1000) {
      const double expected = std::sqrt(2.0 / static_cast<double>(value.size(0) + value.size(1)));
      // The deviation of n normal values is known to 1 / sqrt(2 n).
      const double tolerance = 5 * expected / std::sqrt(2.0 * static_cast<double>(value.numel()));
      EXPECT_NEAR(value.std().item<double>(), expected, tolerance) << name;
    }
  }
}

TEST(NriModel, PairsAndLinks) {
  const Wiring wiring(kSize, at::kCPU);
  const at::Tensor links = at::rand({3, kSize * (kSize - 1)});
  const at::Tensor pairs = wiring.symmetric(links);
  const at::Tensor again = wiring.both_ways(pairs);
  const auto order = links_in_order();
  for (size_t e = 0; e < order.size(); ++e) {
    for (size_t f = 0; f < order.size(); ++f) {
      if (order[e].first != order[f].second || order[e].second != order[f].first) continue;
      const auto a = static_cast<int64_t>(e), b = static_cast<int64_t>(f);
      expect_close(again.select(1, a), (links.select(1, a) + links.select(1, b)) / 2, 1e-6);
    }
  }

  at::Tensor z = pairs.clone().requires_grad_();
  const at::Tensor weights = at::rand({3, kSize * (kSize - 1)});
  (wiring.both_ways(z) * weights).sum().backward();
  expect_close(z.grad(), 2 * wiring.symmetric(weights), 1e-6);

  z = pairs.clone().requires_grad_();
  const at::Tensor one = wiring.one_way(z);
  expect_close(one, again, 1e-6);
  (one * weights).sum().backward();
  at::Tensor expected = at::zeros_like(pairs);
  int64_t pair = 0;
  for (int64_t i = 0; i < kSize; ++i) {
    for (int64_t j = i + 1; j < kSize; ++j, ++pair) {
      for (size_t e = 0; e < order.size(); ++e) {  // sender i, receiver j
        if (order[e].first == j && order[e].second == i) {
          expected.select(1, pair) = weights.select(1, static_cast<int64_t>(e));
        }
      }
    }
  }
  expect_close(z.grad(), expected, 1e-6);
}

TEST(NriModel, LossesOfOneExampleByHand) {
  at::Tensor paths = at::zeros({1, 2, 3, 2});
  at::Tensor predicted = at::zeros({1, 1, 2, 2, 2});
  predicted[0][0][1][0][1] = 0.01;
  predicted[0][0][0][1][0] = -0.02;
  EXPECT_NEAR(path_nll(paths, predicted).item<double>(), 5e-4 / (2 * 5e-5) / 2, 1e-5);
  const at::Tensor scores = at::tensor({0.0f, 1.0f, -2.0f});  // three vertices
  const double expected = (std::exp(-1.0) + (-2.0 + std::exp(2.0) - 1.0)) * 2.0 / 3.0;
  EXPECT_NEAR(score_kl(scores.unsqueeze(0), 3).item<double>(), expected, 1e-5);
}

TEST(NriScores, TreeAndItsComplement) {
  const at::Tensor truth = at::tensor({1, 1, 1, 0, 0, 0}).gt(0).unsqueeze(0);  // four vertices
  const at::Tensor said = at::tensor({1.0f, 0.0f, 1.0f, 1.0f, 0.0f, 0.0f}).unsqueeze(0);
  const at::Tensor scores = score_trees(truth, said);
  const std::vector<double> expected = {2.0 / 3, 2.0 / 3, 4.0 / 6, 1.0 / 3, 1.0 / 3, 2.0 / 6};
  for (int64_t i = 0; i < 6; ++i) EXPECT_NEAR(scores[i].item<double>(), expected[i], 1e-12) << i;
}

}  // namespace
}  // namespace aimle::experiments::nri
