#include "experiments/nri/scores.h"

#include <ATen/Functions.h>

#include <cmath>

#include "aimle/map/spanning_tree.h"

namespace aimle::experiments::nri {
namespace {

at::Tensor score_links(const at::Tensor& truth, const at::Tensor& said) {
  const at::Tensor both = truth.logical_and(said).sum(-1).to(at::kDouble);
  return at::stack({both.div(said.sum(-1).clamp_min(1)).sum(),
                    both.div(truth.sum(-1).clamp_min(1)).sum(),
                    truth.eq(said).to(at::kDouble).mean(-1).sum()});
}

Json list(const at::Tensor& values) {
  Json result = Json::array();
  if (values.dim() > 0) {
    for (int64_t i = 0; i < values.size(0); ++i) result.push_back(list(values[i]));
    return result;
  }
  // Four decimals are more than enough for a picture.
  return std::round(values.item<double>() * 1e4) / 1e4;
}

Json pairs_of(const at::Tensor& tree, int64_t vertices) {
  Json result = Json::array();
  for (int64_t i = 0; i < vertices; ++i) {
    for (int64_t j = i + 1; j < vertices; ++j) {
      if (tree[SpanningTree::edge(i, j, vertices)].item<double>() > 0.5) result.push_back({i, j});
    }
  }
  return result;
}

}  // namespace

at::Tensor score_trees(const at::Tensor& truth, const at::Tensor& predicted) {
  const at::Tensor said = predicted.gt(0.5);
  return at::cat({score_links(truth, said), score_links(truth, said.logical_not())});
}

Json describe_graphs(const at::Tensor& paths, const at::Tensor& truth, const at::Tensor& tree,
                     const at::Tensor& predicted) {
  Json result = Json::array();
  const at::Tensor host_paths = paths.cpu(), host_truth = truth.cpu(), host_tree = tree.cpu();
  const at::Tensor host_predicted = predicted.cpu();
  for (int64_t b = 0; b < paths.size(0); ++b) {
    result.push_back({{"path", list(host_paths[b])},
                      {"predicted", list(host_predicted[b])},
                      {"true_tree", pairs_of(host_truth[b], paths.size(1))},
                      {"tree", pairs_of(host_tree[b], paths.size(1))}});
  }
  return result;
}

}  // namespace aimle::experiments::nri
