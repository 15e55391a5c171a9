#include "experiments/gradient/problem.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include "aimle/torch/functions.h"
#include "experiments/data/numpy_random_state.h"

namespace aimle::experiments {
namespace {

/// v of the header: what one more entry adds to the loss.
at::Tensor price(const Problem& problem) {
  if (problem.target.defined()) return 1 - 2 * problem.target.to(at::kDouble);
  return problem.coefficients.to(at::kDouble).mean(0);
}

bool has_closed_form(const SolverSpec& solver) { return solver.kind()->exact != nullptr; }

/// Cov(z) v over all structures, listed; `sign` is -1 where theta is a cost.
at::Tensor listed_covariance(const SolverSpec& solver, const at::Tensor& theta,
                             const at::Tensor& v) {
  const double sign = solver.sense() == Sense::kMin ? -1.0 : 1.0;
  const at::Tensor z = structures(solver, theta.sizes()).to(at::kDouble).flatten(1);
  const at::Tensor p = at::softmax(sign * z.mv(theta.flatten()), 0);
  const at::Tensor centred = z - p.unsqueeze(0).mm(z);
  return sign * centred.t().mv(p * centred.mv(v.flatten())).view(theta.sizes());
}

at::Tensor as_tensor(const std::vector<double>& values) {
  return at::tensor(values, at::kDouble).to(at::kFloat);
}

}  // namespace

bool can_be_exact(const Problem& problem) {
  constexpr double kFewStructures = 20'000;
  return has_closed_form(problem.solver) ||
         (problem.solver.kind()->lists &&
          structure_count(problem.solver, problem.theta.sizes().slice(1)) <= kFewStructures);
}

void solve_exactly(Problem& problem) {
  const at::Tensor theta = problem.theta.detach().to(at::kDouble);
  const at::Tensor v = price(problem);
  problem.true_gradient = has_closed_form(problem.solver)
                              ? covariance(problem.solver, theta, v.unsqueeze(0)).squeeze(0)
                              : listed_covariance(problem.solver, theta.squeeze(0), v);
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
