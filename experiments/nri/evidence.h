// The evidence bound of latent trees, with the KL of the trees themselves.
//
// Trees are distributed as q(z) = exp(<theta / tau, z> - A(theta / tau)), A the log-partition over
// the n^(n-2) spanning trees, and the prior p(z) is uniform over them:
//
//   KL(q || p) = <theta / tau, mu> - A(theta / tau) + (n - 2) log n,   mu = E z
//   tree_elbo  = -(E_q nll + KL(q || p) / n)   per point, without the Gaussian's constant
//
// tau is the temperature of the run's noise. The trees of a perturbed maximum have no probability
// in closed form; those of the bound are drawn exactly from q, from the same scores. tau = 0 means
// the noise-free tree with probability 1.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace aimle::experiments::nri {

/// KL(q || p) in nats: scores of pairs [B, n (n-1) / 2] -> [B], float64
at::Tensor tree_kl(const at::Tensor& pairs, int64_t vertices, double temperature);

/// One tree of q for every graph: pairs, like the scores [B, n (n-1) / 2]
at::Tensor draw_tree(const at::Tensor& pairs, int64_t vertices, double temperature,
                     const at::Tensor& key);

}  // namespace aimle::experiments::nri
