#include "experiments/dvae/evidence.h"

#include <ATen/Functions.h>

#include <cmath>

#include "aimle/torch/functions.h"

namespace aimle::experiments {
namespace {

double log_binomial(int64_t n, int64_t k) {
  const auto log_factorial = [](int64_t m) { return std::lgamma(static_cast<double>(m) + 1.0); };
  return log_factorial(n) - log_factorial(k) - log_factorial(n - k);
}

/// -log p(z)
double prior_cost(const at::Tensor& theta, int64_t k) {
  return static_cast<double>(theta.size(1)) * log_binomial(theta.size(2), k);
}

}  // namespace

CodeDistribution::CodeDistribution(int64_t k, double temperature)
    : solver_(k == 1 ? argmax() : topk(k)), k_(k), temperature_(temperature) {}

at::Tensor CodeDistribution::scores(const at::Tensor& theta) const {
  return theta.to(at::kDouble) / temperature_;
}

at::Tensor CodeDistribution::kl(const at::Tensor& theta) const {
  const double certain = prior_cost(theta, k_);
  if (temperature_ == 0.0) {
    return at::full({theta.size(0)}, certain, theta.options().dtype(at::kDouble));
  }
  const at::Tensor x = scores(theta);
  const at::Tensor expected = (x * marginals(solver_, x)).sum({1, 2});
  return expected - log_partition(solver_, x).sum(1) + certain;
}

at::Tensor CodeDistribution::draw(const at::Tensor& theta, const at::Tensor& key,
                                  int64_t codes) const {
  const at::Tensor fixed = theta.detach();
  if (temperature_ == 0.0) return solve(solver_, fixed).unsqueeze(2).expand({-1, -1, codes, -1});
  return exact_sample(solver_, scores(fixed), key, codes).to(theta.scalar_type());
}

at::Tensor CodeDistribution::log_ratio(const at::Tensor& theta, const at::Tensor& z) const {
  const double cost = prior_cost(theta, k_);
  if (temperature_ == 0.0) {
    return at::full({z.size(0), z.size(2)}, -cost, theta.options().dtype(at::kDouble));
  }
  const at::Tensor x = scores(theta);
  const at::Tensor chosen = (x.unsqueeze(2) * z).sum({1, 3});
  return log_partition(solver_, x).sum(1).unsqueeze(1) - chosen - cost;
}

at::Tensor binarise(const at::Tensor& x, const at::Tensor& key) {
  const at::Tensor uniform = sample_noise({.kind = NoiseKind::kLogistic}, key,
                                          x.sizes().slice(0, 1), 1, x.sizes().slice(1))
                                 .squeeze(1)
                                 .sigmoid();
  return uniform.lt(x).to(x.scalar_type());
}

at::Tensor importance_weighted_bound(const at::Tensor& log_weights) {
  return std::log(static_cast<double>(log_weights.size(1))) - log_weights.logsumexp(1);
}

}  // namespace aimle::experiments
