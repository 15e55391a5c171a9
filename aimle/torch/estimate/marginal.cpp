// Estimators that differentiate exact marginals, for argmax, topk and spanning_tree:
//
//   exact  hard samples z ~ p(z) = exp(<theta, z> - A(theta)) with the Jacobian of the marginals
//          mu(theta) = E z, which is Cov(z): g = Cov(z) d. For k of n that is what Ahmed, Zeng,
//          Niepert, Van den Broeck, "SIMPLE: A Gradient Estimator for k-Subset Sampling", ICLR
//          2023, do. Exact for linear f, whatever z was drawn; biased otherwise.
//   sst    stochastic softmax tricks (Paulus, Choi, Tarlow, Krause, Maddison, NeurIPS 2020): the
//          soft sample mu((theta + G) / t), G Gumbel noise; with `hard` the solution of theta + G
//          is shown instead, straight-through. For one of n this is Gumbel-Softmax.
#include <utility>

#include "aimle/torch/estimate/builders.h"
#include "aimle/torch/estimate/directions.h"
#include "aimle/torch/estimate/relaxed.h"

namespace aimle {
namespace {

class ExactMarginals final : public Sampled {
 public:
  using Sampled::Sampled;

 private:
  at::Tensor samples(const at::Tensor& scores, const LayerCall& call) const override {
    const at::Tensor soft = marginals(solver(), scores, {.k = call.k}).unsqueeze(-2);
    const at::Tensor fixed = scores.detach();
    const at::Tensor z =
        noisy() ? exact_sample(solver(), fixed, key(scores, call), nb_samples(), {.k = call.k})
                : solved(fixed.unsqueeze(-2), call);
    return straight_through(z, soft);
  }
};

class Sst final : public Relaxation {
 public:
  using Relaxation::Relaxation;

 private:
  at::Tensor samples(const at::Tensor& scores, const LayerCall& call) const override {
    const auto vertices = vertices_of(solver(), scores);
    const at::Tensor x = perturbed(fold(scores, vertices), call);
    const at::Tensor soft = marginals(solver(), x.div(temperature()), per_sample(call));
    return spread(shown(x, soft, call), vertices);
  }
};

}  // namespace

std::unique_ptr<Estimator> build_exact(const EstimatorInfo& info, SolverSpec solver,
                                       const EstimatorOptions& options) {
  return std::make_unique<ExactMarginals>(info, std::move(solver), options);
}

std::unique_ptr<Estimator> build_sst(const EstimatorInfo& info, SolverSpec solver,
                                     const EstimatorOptions& options) {
  return std::make_unique<Sst>(info, std::move(solver), options);
}

}  // namespace aimle
