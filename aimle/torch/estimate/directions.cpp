#include "aimle/torch/estimate/directions.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include "aimle/map/spanning_tree.h"

namespace aimle {
namespace {

at::Tensor convert(const char* op, const at::Tensor& tensor, int64_t vertices) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(op, "")
      .typed<at::Tensor(const at::Tensor&, int64_t)>()
      .call(tensor, vertices);
}

}  // namespace

std::optional<int64_t> vertices_of(const SolverSpec& solver, const at::Tensor& theta) {
  const auto* tree = solver.get_if<SpanningTree>();
  if (tree == nullptr || theta.dim() == 0 || tree->vertices < 2) return std::nullopt;
  if (theta.sym_size(-1) != 2 * tree->edges()) return std::nullopt;
  return tree->vertices;
}

at::Tensor fold(const at::Tensor& theta, std::optional<int64_t> vertices) {
  return vertices ? convert("aimle::fold_directions", theta, *vertices) : theta;
}

LayerCall fold(const LayerCall& call, std::optional<int64_t> vertices) {
  const bool one_for_all = !call.mask || call.mask->dim() == 0 || call.mask->sym_size(-1) == 1;
  if (!vertices || one_for_all) return call;
  LayerCall folded = call;
  folded.mask = convert("aimle::fold_directions", *call.mask, *vertices);
  return folded;
}

at::Tensor spread(const at::Tensor& z, std::optional<int64_t> vertices) {
  return vertices ? convert("aimle::spread_directions", z, *vertices) : z;
}

}  // namespace aimle
