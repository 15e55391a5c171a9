#include "experiments/gradient/problem.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include "aimle/torch/functions.h"
#include "experiments/data/numpy_random_state.h"

namespace aimle::experiments {
namespace {

/// v of the header: the change of the loss per additional entry.
at::Tensor price(const Problem& problem) { return 1 - 2 * problem.target.to(at::kDouble); }

at::Tensor as_tensor(const std::vector<double>& values) {
  return at::tensor(values, at::kDouble).to(at::kFloat);
}

}  // namespace

void solve_exactly(Problem& problem) {
  const at::Tensor theta = problem.theta.detach().to(at::kDouble);
  problem.true_gradient = covariance(problem.solver, theta, price(problem).unsqueeze(0)).squeeze(0);
}

Problem synthetic_problem(int64_t n, int64_t k, uint32_t seed, bool is_signed) {
  RandomState random(seed);
  Problem problem{.solver = k == 1 ? argmax() : topk(k)};
  problem.theta = as_tensor(random.randn(n)).unsqueeze(0);
  problem.target = as_tensor(random.randn(n));
  if (!is_signed) problem.target.abs_();
  solve_exactly(problem);
  return problem;
}

double expected_loss(const Problem& problem, const at::Tensor& theta) {
  const at::Tensor mu = marginals(problem.solver, theta.detach().to(at::kDouble));
  const at::Tensor b = problem.target.to(at::kDouble);
  return ((price(problem) * mu).sum() + b.square().sum()).item<double>();
}

double least_loss(const Problem& problem) {
  const at::Tensor z = solve(problem.solver, -price(problem).unsqueeze(0));
  return (z.squeeze(0) - problem.target.to(at::kDouble)).square().sum().item<double>();
}

}  // namespace aimle::experiments
