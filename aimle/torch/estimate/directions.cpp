#include "aimle/torch/estimate/directions.h"

#include "aimle/map/spanning_tree.h"
#include "aimle/torch/tensor/find_op.h"

namespace aimle {
namespace {

at::Tensor convert(const char* op, const at::Tensor& tensor, int64_t vertices) {
  return ops::find_op<at::Tensor(const at::Tensor&, int64_t)>(op).call(tensor, vertices);
}

/// The number of vertices of the graph whose directed entries x has; 0 if x is not directed.
int64_t vertices_of(const at::Tensor& x, const SolverSpec& solver) {
  const auto* tree = solver.get_if<SpanningTree>();
  if (tree == nullptr || x.dim() == 0 || tree->vertices < 2) return 0;
  return x.sym_size(-1) == 2 * tree->edges() ? tree->vertices : 0;
}

}  // namespace

at::Tensor undirected(const at::Tensor& x, const SolverSpec& solver) {
  const int64_t vertices = vertices_of(x, solver);
  return vertices == 0 ? x : convert("aimle::fold_directions", x, vertices);
}

at::Tensor directed(const at::Tensor& z, const at::Tensor& like, const SolverSpec& solver) {
  const int64_t vertices = vertices_of(like, solver);
  return vertices == 0 ? z : convert("aimle::spread_directions", z, vertices);
}

}  // namespace aimle
