#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>

#include "experiments/engine/estimator_options.h"
#include "experiments/gradient/study.h"
#include "experiments/process/statistics.h"

namespace aimle::experiments {
namespace {

std::vector<double> values(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kDouble).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

TEST(SyntheticProblem, IsTheAuthorsWithTheirTrueGradient) {
  const Problem problem = synthetic_problem(10, 1, 0);
  EXPECT_NEAR(problem.theta[0][0].item<double>(), 1.764052, 1e-6);
  EXPECT_NEAR(problem.target[0].item<double>(), 0.144044, 1e-6);
  const std::vector<double> known = {.11518, -.09237, -.04979, .19866, .00682,
                                     .00298, -.16651, .01369,  .00830, -.03696};
  const std::vector<double> found = values(problem.true_gradient);
  for (size_t j = 0; j < known.size(); ++j) EXPECT_NEAR(found[j], known[j], 1e-5) << j;
}

TEST(SyntheticProblem, SignedKeepsTheSigns) {
  const at::Tensor b = synthetic_problem(10, 1, 0, true).target;
  EXPECT_TRUE(b.lt(0).any().item<bool>());
  EXPECT_TRUE(b.abs().equal(synthetic_problem(10, 1, 0).target));
}

// Central differences of the exact expected loss.
void expect_derivative(const Problem& problem) {
  const at::Tensor theta = problem.theta.to(at::kDouble);
  const double h = 1e-5;
  const std::vector<double> found = values(problem.true_gradient.flatten());
  for (int64_t j = 0; j < theta.numel(); ++j) {
    at::Tensor up = theta.clone();
    at::Tensor down = theta.clone();
    up.view({-1})[j] += h;
    down.view({-1})[j] -= h;
    const double slope = (expected_loss(problem, up) - expected_loss(problem, down)) / (2 * h);
    EXPECT_NEAR(found[static_cast<size_t>(j)], slope, 1e-7) << problem.solver.name() << " " << j;
  }
}

TEST(TrueGradient, IsTheDerivativeOfTheExpectedLoss) {
  for (uint32_t seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE(seed);
    expect_derivative(synthetic_problem(12, 1, seed));
    expect_derivative(synthetic_problem(12, 5, seed, true));
    at::manual_seed(seed);
    Problem tree{.solver = spanning_tree(5)};
    tree.theta = at::randn({1, 10});
    tree.target = at::randn({10});
    solve_exactly(tree);
    expect_derivative(tree);
  }
}

TEST(Contestant, IsReadFromItsName) {
  const Contestant imle = parse_contestant("imle_central:lambda=0.1");
  EXPECT_EQ(imle.label, "imle_central");
  EXPECT_EQ(imle.lambda(), 0.1);
  EXPECT_FALSE(imle.is_adaptive());
  const Contestant first = parse_contestant("thresholds:order=first");
  EXPECT_EQ(first.label, "thresholds:order=first");
  EXPECT_TRUE(parse_contestant("aimle:target_norm=3").is_adaptive());
  EXPECT_ANY_THROW(parse_contestant("aimel"));
  EXPECT_ANY_THROW(parse_contestant("imle:lambda"));
  EXPECT_ANY_THROW(parse_contestant("imle:lambda=-1"));
  EXPECT_ANY_THROW(parse_contestant("ste:lambda=1"));
  EXPECT_ANY_THROW(parse_contestant("ste:nb_samples=1"));
}

TEST(Contestant, EveryEstimatorThatAppliesTakesPart) {
  for (const SolverSpec& solver : {argmax(), topk(3), spanning_tree(4)}) {
    const std::vector<Contestant> all = all_contestants(solver, {1.0});
    for (const EstimatorInfo& info : estimators()) {
      const bool there = std::any_of(all.begin(), all.end(), [&](const Contestant& contestant) {
        return contestant.name == info.name;
      });
      const bool applies =
          info.applies_to(solver) || (solver.name() == argmax().name() && info.applies_to(topk(1)));
      EXPECT_EQ(there, applies) << info.name << " on " << solver.name();
    }
  }
}

/// The authors' study, much reduced: adaptive steps follow the rule of the paper.
Study reduced(const std::vector<std::string>& names, int64_t samples, int64_t seeds) {
  Study study{.sizes = {50}, .seeds = seeds, .warmup = 100};
  for (const std::string& name : names) {
    Contestant contestant = parse_contestant(name);
    use_paper_target(contestant.name, contestant.options);
    study.cells.push_back({contestant, samples});
  }
  return study;
}

std::vector<Row> run(const Study& study, int64_t threads) {
  return run_study(
      study, threads, {}, [](const auto&) {}, [](const auto&) {});
}

// Means over 32 seeds of the authors' procedure, simulated independently with its own noise: twice
// the variance of ours, so the difference is within 4 sqrt(2) standard errors.
TEST(Study, ReproducesTheExpectedCurves) {
  const std::vector<std::pair<std::string, double>> expected = {{"imle:lambda=1", .741},
                                                                {"imle_central:lambda=1", .771},
                                                                {"imle:lambda=0.1", .899},
                                                                {"imle_central:lambda=0.1", .915},
                                                                {"aimle_forward", .845},
                                                                {"aimle", .867},
                                                                {"ste", .440}};
  std::vector<std::string> names;
  for (const auto& [name, cosine] : expected) names.push_back(name);
  const std::vector<Row> rows = run(reduced(names, 1000, 32), 2);
  ASSERT_EQ(rows.size(), 32 * names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    Moments cosine;
    for (size_t seed = 0; seed < 32; ++seed) cosine.add(rows[i * 32 + seed].measured.cosine);
    EXPECT_NEAR(cosine.mean(), expected[i].second,
                4 * std::sqrt(2.0) * cosine.standard_error() + 5e-4)
        << names[i];
    // The problems are the same 32: only the noise differs, and its part is much smaller.
    EXPECT_NEAR(cosine.mean(), expected[i].second, 0.02) << names[i];
  }
}

TEST(Study, AlphaAfterTheAuthorsWarmUpIsStillOnItsWay) {
  for (const Row& row : run(reduced({"aimle"}, 10, 4), 1)) {
    EXPECT_NEAR(row.measured.alpha, 0.1, 1e-9);
  }
}

TEST(Study, AlphaConverges) {
  Study study = reduced({"aimle", "aimle_forward"}, 10, 16);
  study.warmup = 1200;
  study.warmup_samples = 50;
  const std::vector<Row> rows = run(study, 2);
  for (size_t i = 0; i < 2; ++i) {
    Moments alpha;
    for (size_t seed = 0; seed < 16; ++seed) alpha.add(rows[i * 16 + seed].measured.alpha);
    EXPECT_NEAR(alpha.mean(), i == 0 ? .62 : .67, 4 * alpha.standard_error() + 0.005);
  }
}

TEST(Study, IsTheSameForAnyNumberOfThreads) {
  Study study{.sizes = {5, 20}, .k = 2, .seeds = 3, .warmup = 10};
  for (const Contestant& contestant : all_contestants(topk(2), {0.5})) {
    study.cells.push_back({contestant, 30});
  }
  const std::string alone = as_jsonl(run(study, 1));
  EXPECT_GT(alone.size(), 1000U);
  EXPECT_EQ(alone, as_jsonl(run(study, 3)));
}

TEST(Study, SummaryHasTheMeansAndTheirStandardErrors) {
  std::vector<Row> rows(2);
  rows[0] = {.estimator = "imle", .n = 5, .k = 1, .samples = 10, .lambda = 0.5, .seed = 0};
  rows[1] = rows[0];
  rows[1].seed = 1;
  rows[0].measured = {.cosine = 0.5, .zeros = 0.25};
  rows[1].measured = {.cosine = 0.75, .zeros = 0.75};
  EXPECT_EQ(as_summary(rows),
            "estimator,n,k,samples,lambda,cosine_mean,cosine_se,zeros_mean,alpha_mean,seeds\n"
            "imle,5,1,10,0.5,0.625,0.125,0.5,,2\n");
}

}  // namespace
}  // namespace aimle::experiments
