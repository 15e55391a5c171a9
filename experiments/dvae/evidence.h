// How well a discrete VAE explains images: bounds on -log p(x), in nats. Lower is better.
//
// A code z is a k-subset of n entries in each of its rows. The prior p(z) is uniform over all
// codes, and the codes of an image are distributed as
//
//   q(z) = exp(<theta / tau, z> - A(theta / tau)),   A: the log-partition over k-subsets,
//
// independently in every row. For k = 1 that is softmax(theta / tau), which is what argmax under
// Gumbel noise of temperature tau draws (Gumbel-max). For k > 1 the probability of a code under
// perturb-and-MAP has no closed form for any noise; these codes are drawn exactly from q instead,
// from the same scores. tau = 0 means the noise-free code with probability 1.
//
//   KL(q || p) = <theta / tau, mu> - A(theta / tau) + log C(n, k), summed over rows; mu = E z
//   NELBO      = E_q[-log p(x | z)] + KL(q || p)
//   IW_K       = -log mean_s p(x | z_s) p(z_s) / q(z_s), K codes z_s ~ q
//
// -log p(x) <= E IW_K <= E IW_1 = NELBO (Burda, Grosse, Salakhutdinov, ICLR 2016).
//
// A grey image x is read as the pixel probabilities of its binarised versions b. BCE(x, decode(z))
// is the mean of -log p(b | z) over them, so that NELBO bounds the mean of -log p(b), whatever
// theta is. IW_K is not linear in x and needs one b.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "aimle/torch/layer.h"

namespace aimle::experiments::dvae {

/// q above for scores theta [B, rows, n]; float64 inside. No gradients.
class CodeDistribution {
 public:
  CodeDistribution(const at::Tensor& theta, int64_t k, double temperature);

  /// KL(q || p): [B]
  at::Tensor kl() const;
  /// Independent codes: [B, rows, codes, n], like theta.
  at::Tensor draw(const at::Tensor& key, int64_t codes) const;
  /// log p(z) - log q(z) for codes z that q can draw: [B, codes]
  at::Tensor log_ratio(const at::Tensor& z) const;

 private:
  bool is_certain() const { return !log_partition_.defined(); }

  SolverSpec solver_;
  at::Tensor theta_;
  double prior_cost_;         // -log p(z), of any code
  at::Tensor scores_;         // theta / tau [B, rows, n]; undefined for tau = 0
  at::Tensor log_partition_;  // of all rows together, [B]; undefined for tau = 0
};

/// Pixels of 0 and 1, each 1 with probability x: like x [B, pixels]. A function of the key.
at::Tensor binarise(const at::Tensor& x, const at::Tensor& key);

/// IW_K from log p(x | z_s) + log p(z_s) - log q(z_s), [B, K] -> [B]
at::Tensor importance_weighted_bound(const at::Tensor& log_weights);

}  // namespace aimle::experiments::dvae
