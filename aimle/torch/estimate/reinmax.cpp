// ReinMax: a second-order straight-through estimator for one of n.
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

#include <limits>

#include "aimle/torch/estimate/sampled.h"

namespace aimle {
namespace {

/// J(p) theta.
at::Tensor jacobian(const at::Tensor& p, const at::Tensor& theta) {
  return p.mul(theta.sub(p.mul(theta).sum(-1, /*keepdim=*/true)));
}

}  // namespace

at::Tensor reinmax_samples(const SampleRequest& request) {
  const at::Tensor scores = request.scores.unsqueeze(-2);
  const at::Tensor banned = scores.eq(-std::numeric_limits<double>::infinity());
  const at::Tensor free = at::where(banned, 0.0, scores);
  const at::Tensor z = solved(request, perturbed(request));
  const at::Tensor pi = at::softmax(scores.detach(), -1);
  const at::Tensor soft = jacobian(pi.add(z).div(2), free).mul(2).sub(jacobian(pi, free).div(2));
  return straight_through(z, soft);
}

}  // namespace aimle
