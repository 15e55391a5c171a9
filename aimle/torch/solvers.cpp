#include "aimle/torch/solvers.h"

#include "aimle/torch/value_error.h"

namespace aimle::ops {
namespace {

template <MapSolver S>
S validated(const S& solver) {
  with_value_errors([&] { solver.validate(); });
  return solver;
}

int64_t size(const at::Tensor& scores, int64_t dim) { return scores.sym_size(dim).expect_int(); }

/// (row, column), negative ones counted from the end, as a raster index.
int64_t cell(std::string_view name, at::IntArrayRef at, int64_t height, int64_t width) {
  TORCH_CHECK_VALUE(at.size() == 2, "[aimle::grid_path] expected ", name,
                    " to be (row, column) but got ", at.size(), " numbers");
  TORCH_CHECK_VALUE(-height <= at[0] && at[0] < height && -width <= at[1] && at[1] < width,
                    "[aimle::grid_path] expected ", name, " inside the ", height, " x ", width,
                    " grid but got (", at[0], ", ", at[1], ")");
  const int64_t row = at[0] < 0 ? at[0] + height : at[0];
  const int64_t column = at[1] < 0 ? at[1] + width : at[1];
  return row * width + column;
}

}  // namespace

Argmax argmax_settings(const at::Tensor& scores) {
  return validated(Argmax{.n = size(scores, -1)});
}

TopK topk_settings(const at::Tensor& scores, int64_t k, bool has_row_k) {
  return validated(TopK{.n = size(scores, -1), .k = has_row_k ? 0 : k});
}

SpanningTree spanning_tree_settings(const at::Tensor& scores, int64_t vertices) {
  SpanningTree tree = validated(SpanningTree{.vertices = vertices});
  const int64_t entries = size(scores, -1);
  if (entries == 2 * tree.edges()) tree.layout = SpanningTree::Layout::kDirected;
  TORCH_CHECK_VALUE(entries == tree.size(), "[aimle::spanning_tree] expected scores of ",
                    tree.edges(), " (undirected) or ", 2 * tree.edges(),
                    " (directed) entries for vertices=", vertices, " but the last dimension is ",
                    entries);
  return tree;
}

GridPath grid_path_settings(const at::Tensor& scores, int64_t neighbourhood, at::IntArrayRef source,
                            at::IntArrayRef target, std::string_view negative) {
  TORCH_CHECK_VALUE(neighbourhood == 4 || neighbourhood == 8,
                    "[aimle::grid_path] expected neighbourhood to be 4 or 8 but got ",
                    neighbourhood);
  TORCH_CHECK_VALUE(negative == "clip" || negative == "error",
                    "[aimle::grid_path] expected negative to be \"clip\" or \"error\" but got \"",
                    negative, "\"");
  const int64_t height = size(scores, -2), width = size(scores, -1);
  TORCH_CHECK_VALUE(height > 0 && width > 0,
                    "[aimle::grid_path] expected scores of grids of at least 1 x 1 but got ",
                    height, " x ", width);
  return validated(GridPath{
      .height = height,
      .width = width,
      .neighbourhood = static_cast<int>(neighbourhood),
      .source = cell("source", source, height, width),
      .target = cell("target", target, height, width),
      .negative = negative == "clip" ? GridPath::Negative::kClip : GridPath::Negative::kError});
}

}  // namespace aimle::ops
