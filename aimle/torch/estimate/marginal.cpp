// Estimators that differentiate exact marginals, for solvers that have an exact distribution:
//
//   exact  hard samples z ~ p(z) = exp(<theta, z> - A(theta)) with the Jacobian of the marginals
//          mu(theta) = E z, which is Cov(z): g = Cov(z) d. For k of n this is SIMPLE (Ahmed, Zeng,
//          Niepert, Van den Broeck, "SIMPLE: A Gradient Estimator for k-Subset Sampling", ICLR
//          2023). Exact for linear f, whatever z was drawn; biased otherwise.
//   sst    stochastic softmax tricks (Paulus, Choi, Tarlow, Krause, Maddison, NeurIPS 2020): the
//          soft sample mu((theta + G) / t), G Gumbel noise (bernoulli: logistic); with `hard` the
//          output is the solution of theta + G, straight-through. For one of n this is
//          Gumbel-Softmax.
#include "aimle/torch/estimate/directions.h"
#include "aimle/torch/estimate/sampled.h"

namespace aimle {

at::Tensor exact_marginal_samples(const SampleRequest& request) {
  const at::Tensor mu = marginals(request.solver, request.scores, per_row(request));
  return straight_through(exact_or_solved(request), mu.unsqueeze(sample_dim(request)));
}

at::Tensor sst_samples(const SampleRequest& request) {
  SampleRequest folded = request;
  folded.scores = undirected(request.scores, request.solver);
  if (!folded.scores.is_same(request.scores)) folded.mask.reset();  // the scores are already -inf
  const at::Tensor x = perturbed(folded);
  const at::Tensor soft = marginals(request.solver, x.div(request.temperature), per_sample(folded));
  return directed(shown(folded, x, soft), request.scores, request.solver);
}

}  // namespace aimle
