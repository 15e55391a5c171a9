#include "experiments/gradient/diagnose.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <optional>

#include "aimle/torch/functions.h"
#include "experiments/gradient/measure.h"
#include "experiments/process/failure.h"
#include "experiments/process/interrupt.h"
#include "experiments/process/statistics.h"
#include "experiments/process/workers.h"

namespace aimle::experiments {
namespace {

constexpr int64_t kBlocks = 20;

struct Cell {
  Contestant contestant;
  int64_t samples = 0;
};

std::vector<Cell> cells_of(const Problem& problem, const DiagnoseSettings& settings) {
  const std::vector<Contestant> contestants =
      settings.contestants.empty() ? all_contestants(problem.solver, settings.lambdas)
                                   : settings.contestants;
  std::vector<Cell> cells;
  for (const Contestant& contestant : contestants) {
    for (const int64_t samples : settings.samples) {
      if (samples >= contestant.least_samples()) cells.push_back({contestant, samples});
    }
  }
  return cells;
}

at::Tensor losses_of(const Problem& problem, const at::Tensor& z) {  // [S, *instance] -> [S]
  if (problem.target.defined()) return (z - problem.target).square().flatten(1).sum(1);
  return (z * problem.coefficients.mean(0)).flatten(1).sum(1);
}

/// An unbiased estimate of the model's gradient, under the noise that layers over costs have by
/// default.
at::Tensor model_gradient(const Problem& problem, int64_t samples, const at::Tensor& key) {
  const at::Tensor theta = problem.theta.squeeze(0);
  const NoiseSpec noise{.kind = NoiseKind::kNormal};
  const at::Tensor eps = sample_noise(noise, key, {1}, samples, theta.sizes()).squeeze(0);
  const double sign = problem.solver.sense() == Sense::kMin ? -1.0 : 1.0;
  const at::Tensor z = solve(problem.solver, theta + sign * kCostTemperature * eps);
  const at::Tensor f = losses_of(problem, z).to(at::kDouble);
  const at::Tensor centred = (f - f.mean()) * (static_cast<double>(samples) / (samples - 1));
  const at::Tensor score = eps.to(at::kDouble) / kCostTemperature;
  return sign * (centred.unsqueeze(1) * score.flatten(1)).mean(0).view(theta.sizes());
}

/// One block of the long run: the mean of the estimates of its parts.
at::Tensor block_gradient(const Problem& problem, int64_t samples, int64_t most_numbers,
                          uint64_t seed, int64_t block) {
  const int64_t at_once = std::max<int64_t>(2, most_numbers / problem.size());
  const int64_t parts = std::max<int64_t>(1, samples / at_once);
  at::Tensor total = at::zeros(problem.theta.sizes().slice(1), at::kDouble);
  for (int64_t part = 0; part < parts; ++part) {
    stop_if_interrupted();
    const at::Tensor key =
        noise_key(seed, 99, static_cast<uint64_t>(part), static_cast<uint64_t>(block));
    total += model_gradient(problem, samples / parts, key);
  }
  return total / parts;
}

Diagnosis diagnose_cell(const Problem& problem, const DiagnoseSettings& settings,
                        const Cell& cell) {
  using Clock = std::chrono::steady_clock;
  const int64_t samples = cell.samples;
  Contestant contestant = cell.contestant;
  if (contestant.options.lambda) *contestant.options.lambda /= settings.temperature;
  // Layers over costs have that temperature by themselves.
  if (contestant.name == "dpo" && problem.solver.has_costs()) {
    contestant.options.temperature = kCostTemperature;
  }
  const auto estimator = contestant.build(problem.solver, samples);
  if (contestant.is_adaptive()) {
    const auto warm =
        contestant.build(problem.solver, std::max<int64_t>(50, contestant.least_samples()));
    warm_up(*warm, problem, settings.warmup, settings.seed);
    carry_state(*warm, *estimator);
  }
  Diagnosis result{.estimator = contestant.label, .samples = samples};
  result.fixed_lambda = contestant.lambda().has_value();
  Moments cosine;
  Moments zeros;
  Moments lambda;
  Moments clipped;
  double fastest = std::numeric_limits<double>::infinity();
  std::vector<at::Tensor> estimates;
  for (int64_t repeat = 0; repeat < settings.repeats; ++repeat) {
    stop_if_interrupted();
    const at::Tensor key = noise_key(settings.seed + 1, static_cast<uint64_t>(samples), 77,
                                     static_cast<uint64_t>(repeat));
    const auto start = Clock::now();
    estimates.push_back(estimate(*estimator, problem, key));
    fastest = std::min(fastest, std::chrono::duration<double>(Clock::now() - start).count());
    const Measurement found = compare(estimates.back(), problem.true_gradient);
    cosine.add(found.cosine);
    zeros.add(found.zeros);
    const auto stats = estimator->stats();
    if (const auto step = stats.find("lambda_mean"); step != stats.end()) {
      lambda.add(step->second.item<double>());
    }
    if (const auto share = stats.find("clipped_share"); share != stats.end()) {
      clipped.add(share->second.item<double>());
    }
  }
  const at::Tensor all = at::stack(estimates).flatten(1);
  const at::Tensor mean = all.mean(0);
  const at::Tensor truth = problem.true_gradient.flatten();
  const double scale = truth.norm().item<double>();
  const auto repeats = static_cast<double>(settings.repeats);
  const double variance =
      (all - mean).square().sum().item<double>() / std::max(1.0, repeats - 1.0) / (scale * scale);
  const double squared = (mean - truth).square().sum().item<double>() / (scale * scale);
  result.cosine = cosine.mean();
  result.cosine_error = settings.repeats > 1 ? cosine.standard_error() : 0.0;
  result.norm_ratio = mean.norm().item<double>() / scale;
  result.bias = std::sqrt(std::max(0.0, squared - variance / repeats));
  result.variance = variance;
  result.zeros = zeros.mean();
  result.lambda = cell.contestant.lambda().value_or(lambda.mean() * settings.temperature);
  const auto& state = estimator->state();
  if (const auto alpha = state.find("alpha"); alpha != state.end()) {
    result.alpha = alpha->second.item<double>();
  }
  result.microseconds = 1e6 * fastest;
  result.clipped = clipped.mean();
  return result;
}

}  // namespace

Truth find_truth(Problem& problem, int64_t long_run_samples, uint64_t seed, int64_t most_numbers) {
  if (can_be_exact(problem)) {
    solve_exactly(problem);
    return {};
  }
  std::vector<at::Tensor> blocks;
  for (int64_t block = 0; block < kBlocks; ++block) {
    blocks.push_back(block_gradient(problem, std::max<int64_t>(2, long_run_samples / kBlocks),
                                    most_numbers, seed, block));
  }
  const at::Tensor all = at::stack(blocks);
  problem.true_gradient = all.mean(0);
  const double error = std::sqrt(all.var(0).sum().item<double>() / kBlocks);
  return {.exact = false, .relative_error = error / problem.true_gradient.norm().item<double>()};
}

int64_t count_diagnoses(const Problem& problem, const DiagnoseSettings& settings) {
  return static_cast<int64_t>(cells_of(problem, settings).size());
}

std::vector<Diagnosis> diagnose(const Problem& problem, const DiagnoseSettings& settings,
                                int64_t threads,
                                const std::function<void(const std::string&)>& step) {
  if (!(problem.true_gradient.norm().item<double>() > 0.0)) {
    throw Failure("the true gradient is zero: this loss does not depend on the choice");
  }
  const std::vector<Cell> cells = cells_of(problem, settings);
  std::vector<std::optional<Diagnosis>> slots(cells.size());
  std::mutex mutex;
  run_tasks(static_cast<int64_t>(cells.size()), threads, [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    Diagnosis found = diagnose_cell(problem, settings, cells[at]);
    const std::scoped_lock lock(mutex);
    slots[at] = std::move(found);
    step(cells[at].contestant.label);
  });
  std::vector<Diagnosis> result;
  for (auto& slot : slots) {
    if (slot) result.push_back(std::move(*slot));
  }
  return result;
}

}  // namespace aimle::experiments
