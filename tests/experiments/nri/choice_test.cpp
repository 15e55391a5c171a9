#include "experiments/nri/choice.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "experiments/engine/estimator_options.h"
#include "experiments/registry.h"

namespace aimle::experiments::nri {
namespace {

constexpr int64_t kN = 10, kPairs = 45, kLinks = 90, kBatch = 16;

// The authors' procedure on 90 links, receiver by receiver, from their description: numbers in
// float64, trees by Kruskal's algorithm on the links with sender < receiver.
struct Authors {
  double alpha = 0.0, gbar = 1.0;
  double lambda = 0.0;  // > 0: fixed, and nothing is adapted
  bool central = false;

  static int64_t link(int64_t receiver, int64_t sender) {
    return receiver * (kN - 1) + (sender < receiver ? sender : sender - 1);
  }

  static at::Tensor trees(const at::Tensor& scores) {
    at::Tensor result = at::zeros_like(scores);
    for (int64_t b = 0; b < scores.size(0); ++b) {
      std::vector<std::tuple<double, int64_t, int64_t>> edges;
      for (int64_t i = 0; i < kN; ++i) {
        for (int64_t j = i + 1; j < kN; ++j) {
          edges.emplace_back(-scores[b][link(j, i)].item<double>(), i, j);
        }
      }
      std::sort(edges.begin(), edges.end());
      std::vector<int64_t> root(kN);
      std::iota(root.begin(), root.end(), 0);
      for (const auto& [cost, i, j] : edges) {
        const int64_t from = root[i], to = root[j];
        if (from == to) continue;
        std::replace(root.begin(), root.end(), from, to);
        result[b][link(j, i)] = 1.0;
        result[b][link(i, j)] = 1.0;
      }
    }
    return result;
  }

  at::Tensor backward(const at::Tensor& theta, const at::Tensor& dy) {
    const bool adaptive = lambda == 0.0;
    const double step = adaptive ? alpha * (theta.norm() / dy.norm()).item<double>() : lambda;
    const at::Tensor right = trees(theta - step * dy);
    const at::Tensor left = central ? trees(theta + step * dy) : trees(theta);
    at::Tensor difference = left - right;
    if (central) difference = difference / 2.0;
    if (!adaptive) return difference;
    const double count =
        difference.count_nonzero().item<double>() / static_cast<double>(theta.size(0));
    gbar = 0.9 * gbar + 0.1 * count;
    alpha = std::max(0.0, alpha + (gbar < 1.0 ? 1e-3 : -1e-3));
    return difference / (step > 0.0 ? step : 1.0);
  }
};

Settings reference_settings(const std::string& method) {
  const Experiment& nri = experiment("nri");
  Settings settings = default_settings(nri);
  for (const Preset& preset : nri.presets) {
    if (preset.name == "reference") settings.apply(preset);
  }
  settings.set("method", method, Origin::kUser);
  return settings;
}

// Gradients of links whose two directions have the same norm over the batch: with these, norms
// over pairs and norms over links agree to the last digits.
at::Tensor gradient_with_equal_directions(const Wiring& wiring) {
  const at::Tensor pairs = at::randn({kBatch, kPairs}, at::kDouble);
  const at::Tensor forth = wiring.both_ways(pairs), back = wiring.both_ways(pairs.flip(0));
  at::Tensor result = forth.clone();
  for (int64_t r = 0; r < kN; ++r) {
    for (int64_t s = r + 1; s < kN; ++s) {
      result.select(1, Authors::link(r, s)).copy_(back.select(1, Authors::link(r, s)));
    }
  }
  return result * 1e-2;
}

// Scores with a gradient as the experiment's step gives them: links -> pairs -> tree -> links.
void expect_the_authors_numbers(const std::string& method, Authors authors, uint64_t seed) {
  SCOPED_TRACE(method + ", seed " + std::to_string(seed));
  at::manual_seed(seed);
  const Settings settings = reference_settings(method);
  EstimatorOptions options = chosen_estimator_options(settings);
  options.noise = NoiseSpec{.kind = NoiseKind::kNone};
  const auto estimator = make_estimator(settings, spanning_tree(kN), options, at::kCPU);
  const Wiring wiring(kN, at::kCPU);
  const LinkGradient gradient = link_gradient(settings, options);
  int64_t moved = 0;
  for (int step = 0; step < 60; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const at::Tensor scores = at::randn({kBatch, kLinks}, at::kDouble).requires_grad_();
    const at::Tensor dy = gradient_with_equal_directions(wiring);
    const at::Tensor theta = wiring.symmetric(scores);
    const at::Tensor key = at::zeros({2}, at::kLong);
    const Choice choice = choose(*estimator, wiring, gradient, theta, key);
    const at::Tensor both = wiring.both_ways(theta.detach());
    ASSERT_TRUE(choice.links.detach().squeeze(1).equal(Authors::trees(both)));
    (choice.links.squeeze(1) * dy).sum().backward();

    // Through the mean of both directions, a link's score gets half of what the two links get.
    const at::Tensor at_links = authors.backward(both, dy);
    const at::Tensor expected = wiring.both_ways(wiring.symmetric(at_links));
    moved += expected.count_nonzero().item<int64_t>();
    const double size = 1.0 + expected.abs().max().item<double>();
    EXPECT_LE((scores.grad() - expected).abs().max().item<double>(), 1e-9 * size);
    if (authors.lambda == 0.0) {
      EXPECT_NEAR(estimator->state().at("alpha").item<double>(), authors.alpha, 1e-12);
      EXPECT_NEAR(estimator->state().at("gbar").item<double>(), authors.gbar / 2.0, 1e-12);
    }
  }
  EXPECT_GT(moved, 0);
}

TEST(NriChoice, ReferenceStepsAreTheAuthorsOnNinetyLinks) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    expect_the_authors_numbers("aimle_forward", {}, seed);
    expect_the_authors_numbers("aimle", {.central = true}, seed);
    expect_the_authors_numbers("imle", {.lambda = 1.0}, seed);
    expect_the_authors_numbers("imle_central", {.lambda = 1.0, .central = true}, seed);
  }
}

TEST(NriChoice, ByDefaultBothDirectionsCount) {
  const Settings settings = default_settings(experiment("nri"));
  for (const std::string method : {"aimle", "imle", "sst", "ste"}) {
    Settings own = settings;
    own.set("method", method, Origin::kUser);
    const LinkGradient gradient = link_gradient(own, chosen_estimator_options(own));
    EXPECT_FALSE(gradient.one_way) << method;
    EXPECT_EQ(gradient.factor, 1.0) << method;
  }
}

}  // namespace
}  // namespace aimle::experiments::nri
