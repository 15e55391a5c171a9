#include "experiments/nri/evidence.h"

#include <ATen/Functions.h>

#include <cmath>

#include "aimle/torch/functions.h"

namespace aimle::experiments::nri {

at::Tensor tree_kl(const at::Tensor& pairs, int64_t vertices, double temperature) {
  const auto n = static_cast<double>(vertices);
  const double log_trees = (n - 2.0) * std::log(n);
  if (temperature == 0.0) {
    return at::full({pairs.size(0)}, log_trees, pairs.options().dtype(at::kDouble));
  }
  const at::Tensor x = pairs.to(at::kDouble) / temperature;
  const SolverSpec trees = spanning_tree(vertices);
  return (x * marginals(trees, x)).sum(-1) - log_partition(trees, x) + log_trees;
}

at::Tensor draw_tree(const at::Tensor& pairs, int64_t vertices, double temperature,
                     const at::Tensor& key) {
  const SolverSpec trees = spanning_tree(vertices);
  if (temperature == 0.0) return solve(trees, pairs);
  const at::Tensor x = pairs.to(at::kDouble) / temperature;
  return exact_sample(trees, x, key, 1).squeeze(1).to(pairs.scalar_type());
}

}  // namespace aimle::experiments::nri
