#include "experiments/dvae/evidence.h"

#include <ATen/Functions.h>

#include <cmath>

#include "aimle/torch/functions.h"

namespace aimle::experiments::dvae {
namespace {

double log_binomial(int64_t n, int64_t k) {
  const auto log_factorial = [](int64_t m) { return std::lgamma(static_cast<double>(m) + 1.0); };
  return log_factorial(n) - log_factorial(k) - log_factorial(n - k);
}

}  // namespace

CodeDistribution::CodeDistribution(const at::Tensor& theta, int64_t k, double temperature)
    : solver_(k == 1 ? argmax() : topk(k)),
      theta_(theta.detach()),
      prior_cost_(static_cast<double>(theta.size(1)) * log_binomial(theta.size(2), k)) {
  if (temperature == 0.0) return;
  scores_ = theta_.to(at::kDouble) / temperature;
  log_partition_ = log_partition(solver_, scores_).sum(1);
}

at::Tensor CodeDistribution::kl() const {
  if (is_certain()) {
    return at::full({theta_.size(0)}, prior_cost_, theta_.options().dtype(at::kDouble));
  }
  const at::Tensor expected = (scores_ * marginals(solver_, scores_)).sum({1, 2});
  return expected - log_partition_ + prior_cost_;
}

at::Tensor CodeDistribution::draw(const at::Tensor& key, int64_t codes) const {
  if (is_certain()) return solve(solver_, theta_).unsqueeze(2).expand({-1, -1, codes, -1});
  return exact_sample(solver_, scores_, key, codes).to(theta_.scalar_type());
}

at::Tensor CodeDistribution::log_ratio(const at::Tensor& z) const {
  if (is_certain()) {
    return at::full({z.size(0), z.size(2)}, -prior_cost_, theta_.options().dtype(at::kDouble));
  }
  const at::Tensor chosen = at::matmul(z.to(at::kDouble), scores_.unsqueeze(-1)).sum({1, 3});
  return log_partition_.unsqueeze(1) - chosen - prior_cost_;
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

}  // namespace aimle::experiments::dvae
