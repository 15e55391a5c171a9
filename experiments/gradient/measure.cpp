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

at::Tensor loss_gradient(const Problem& problem, const at::Tensor& z) {
  return z.detach().sub(problem.target).mul_(2);
}

at::Tensor losses(const Problem& problem, const at::Tensor& z) {
  return (z - problem.target).square().flatten(1).sum(1);
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
  if (estimator.needs_losses()) {
    const at::Tensor by_sample = losses(problem, z).unsqueeze(0);
    estimator.surrogate(theta, output, by_sample).sum().backward();
  } else {
    z.backward(loss_gradient(problem, z));
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
