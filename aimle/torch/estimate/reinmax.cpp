// ReinMax: straight-through for one of n, to second order.
//
// Liu, Dong, Liu, Yu, Gao, "Bridging Discrete and Backpropagation: Straight-Through and Beyond",
// NeurIPS 2023. With pi = softmax(theta), z ~ pi, q = (pi + z) / 2 and J(p) = diag(p) - p p':
//
//   g = (2 J(q) - J(pi) / 2) d
//
// The mean over z of g is Heun's rule for f along each pair of choices: unbiased for the gradient
// of E f(z) for every quadratic f. No step size, no temperature.
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>

#include <utility>

#include "aimle/torch/estimate/builders.h"
#include "aimle/torch/estimate/sampled.h"

namespace aimle {
namespace {

/// J(p) theta.
at::Tensor jacobian(const at::Tensor& p, const at::Tensor& theta) {
  return p.mul(theta.sub(p.mul(theta).sum(-1, /*keepdim=*/true)));
}

class ReinMax final : public Sampled {
 public:
  using Sampled::Sampled;

 private:
  at::Tensor samples(const at::Tensor& scores, const LayerCall& call) const override {
    const at::Tensor free = at::where(scores.isfinite(), scores, 0.0).unsqueeze(-2);
    const at::Tensor fixed = hide(scores.detach(), scores.isfinite());
    const at::Tensor z = solved(perturbed(fixed, call), call);
    const at::Tensor pi = at::softmax(fixed.unsqueeze(-2), -1);
    const at::Tensor soft = jacobian(pi.add(z).div(2), free).mul(2).sub(jacobian(pi, free).div(2));
    return straight_through(z, soft);
  }
};

}  // namespace

std::unique_ptr<Estimator> build_reinmax(const EstimatorInfo& info, SolverSpec solver,
                                         const EstimatorOptions& options) {
  return std::make_unique<ReinMax>(info, std::move(solver), options);
}

}  // namespace aimle
