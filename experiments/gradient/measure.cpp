#include "experiments/gradient/measure.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <limits>

#include "experiments/process/interrupt.h"

namespace aimle::experiments {
namespace {

uint64_t mix(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// c of every sample: [S, *instance]. Calls go on where the one before stopped, so that all rows
/// have the same weight in the long run.
at::Tensor rows_of_samples(const at::Tensor& coefficients, int64_t samples, const at::Tensor& key) {
  const int64_t rows = coefficients.size(0);
  const int64_t first = key[1].item<int64_t>() % rows * samples;
  return coefficients.index_select(0, (at::arange(samples, at::kLong) + first).remainder(rows));
}

/// The problem as the z of one call see it: a linear loss gets a row for every sample, and for an
/// estimator of the mean the mean row.
Problem with_rows(Problem problem, int64_t samples, bool is_mean, const at::Tensor& key) {
  if (problem.target.defined()) return problem;
  problem.coefficients = is_mean ? problem.coefficients.mean(0, true)
                                 : rows_of_samples(problem.coefficients, samples, key);
  return problem;
}

at::Tensor loss_gradient(const Problem& problem, const at::Tensor& z) {
  if (problem.target.defined()) return z.detach().sub(problem.target).mul_(2);
  return problem.coefficients;
}

at::Tensor losses(const Problem& problem, const at::Tensor& z) {
  if (problem.target.defined()) return (z - problem.target).square().flatten(1).sum(1);
  return (z * problem.coefficients).flatten(1).sum(1);
}

double value_or_nan(const Estimator::Tensors& tensors, const char* name) {
  const auto found = tensors.find(name);
  return found == tensors.end() ? std::numeric_limits<double>::quiet_NaN()
                                : found->second.item<double>();
}

}  // namespace

at::Tensor noise_key(uint64_t a, uint64_t b, uint64_t c, uint64_t step) {
  const uint64_t key = mix(mix(mix(a) ^ b) ^ c);
  return at::tensor({static_cast<int64_t>(key >> 1), static_cast<int64_t>(step)}, at::kLong);
}

at::Tensor estimate(const Estimator& estimator, const Problem& problem, const at::Tensor& key,
                    const at::Tensor& at_theta) {
  const at::Tensor& given = at_theta.defined() ? at_theta : problem.theta;
  const at::Tensor theta = given.detach().clone().requires_grad_(true);
  const at::Tensor output = estimator(theta, {.key = key});
  // [1, S, *instance], or [1, *instance] from an estimator of the mean: its one row is a sample.
  const bool is_mean = output.dim() == theta.dim();
  const at::Tensor z = is_mean ? output : output.squeeze(0);
  const Problem seen = with_rows(problem, z.size(0), is_mean, key);
  if (estimator.needs_losses()) {
    const at::Tensor by_sample = losses(seen, z).unsqueeze(0);
    estimator.surrogate(theta, output, by_sample).sum().backward();
  } else {
    z.backward(loss_gradient(seen, z));
  }
  if (!theta.grad().defined()) return at::zeros_like(problem.true_gradient);
  return theta.grad().squeeze(0).to(at::kDouble) / static_cast<double>(z.size(0));
}

void warm_up(const Estimator& estimator, const Problem& problem, int64_t steps, uint64_t stream) {
  for (int64_t step = 0; step < steps; ++step) {
    stop_if_interrupted();
    estimate(estimator, problem, noise_key(stream, 0, 0, static_cast<uint64_t>(step)));
  }
}

void carry_state(const Estimator& from, const Estimator& to) {
  for (const auto& [name, tensor] : from.state()) to.state().at(name).copy_(tensor);
}

Measurement compare(const at::Tensor& estimate, const at::Tensor& truth) {
  const double norm = estimate.norm().item<double>();
  const double true_norm = truth.norm().item<double>();
  const double product = (estimate * truth).sum().item<double>();
  return {.cosine = norm * true_norm > 0.0 ? product / (norm * true_norm) : 0.0,
          .zeros = estimate.abs().lt(kZero).to(at::kDouble).mean().item<double>(),
          .norm_ratio = norm / true_norm,
          .relative_error = (estimate - truth).norm().item<double>() / true_norm};
}

Measurement measure(const Estimator& estimator, const Problem& problem, const at::Tensor& key) {
  const double alpha = value_or_nan(estimator.state(), "alpha");
  Measurement result = compare(estimate(estimator, problem, key), problem.true_gradient);
  result.alpha = alpha;
  result.lambda = value_or_nan(estimator.stats(), "lambda_mean");
  return result;
}

}  // namespace aimle::experiments
