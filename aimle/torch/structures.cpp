// structures: every structure of a solver, uint8 [N, *instance] of 0 and 1; see exact/enumerate.h.
// `solver` and `solver_args` as in the layer ops, `instance` the sizes of one instance.
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>

#include "aimle/exact/enumerate.h"
#include "aimle/torch/solvers.h"
#include "aimle/torch/value_error.h"

namespace aimle::ops {
namespace {

struct Listed {
  std::vector<int64_t> sizes;  // [N, *instance]
  std::vector<uint8_t> z;
};

Solver make_solver(std::string_view solver, at::IntArrayRef args, const at::Tensor& shape) {
  if (solver == "argmax") return argmax_settings(shape);
  if (solver == "topk") return topk_settings(shape, args[0], false);
  if (solver == "spanning_tree") return spanning_tree_settings(shape, args[0]);
  return grid_path_settings(shape, args[0], args.slice(1, 2), args.slice(3, 2),
                            args[5] != 0 ? "error" : "clip");
}

Listed list(std::string_view solver, at::IntArrayRef solver_args, at::IntArrayRef instance) {
  const bool grid = solver == "grid_path";
  const size_t arguments = solver == "argmax" ? 0 : grid ? 6 : 1;
  const size_t dims = grid ? 2 : 1;
  TORCH_CHECK_VALUE(grid || solver == "argmax" || solver == "topk" || solver == "spanning_tree",
                    "[aimle::structures] expected solver to be a native one but got \"", solver,
                    "\"");
  TORCH_CHECK_VALUE(solver_args.size() == arguments, "[aimle::structures] expected ", arguments,
                    " solver_args for \"", solver, "\" but got ", solver_args);
  TORCH_CHECK_VALUE(instance.size() == dims, "[aimle::structures] expected ", dims,
                    " sizes of an instance of \"", solver, "\" but got ", instance);
  const at::Tensor shape = at::empty(instance, at::TensorOptions(at::kMeta).dtype(at::kFloat));
  const Solver native = make_solver(solver, solver_args, shape);
  Listed listed{.z = with_value_errors([&] { return enumerate(native); })};
  // A tree of one vertex is one structure without entries.
  const int64_t size = shape.numel();
  listed.sizes = {size == 0 ? 1 : static_cast<int64_t>(listed.z.size()) / size};
  listed.sizes.insert(listed.sizes.end(), instance.begin(), instance.end());
  return listed;
}

at::Tensor structures(std::string_view solver, at::IntArrayRef solver_args,
                      at::IntArrayRef instance, std::optional<at::Device> device) {
  const Listed listed = list(solver, solver_args, instance);
  at::Tensor z = at::empty(listed.sizes, at::kByte);
  std::copy(listed.z.begin(), listed.z.end(), z.mutable_data_ptr<uint8_t>());
  return device ? z.to(*device) : z;
}

at::Tensor structures_meta(std::string_view solver, at::IntArrayRef solver_args,
                           at::IntArrayRef instance, std::optional<at::Device>) {
  return at::empty(list(solver, solver_args, instance).sizes,
                   at::TensorOptions(at::kMeta).dtype(at::kByte));
}

TORCH_LIBRARY_FRAGMENT(aimle, library) {
  library.def(
      "structures(str solver, int[] solver_args, int[] instance, *, Device? device=None) -> Tensor",
      {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(aimle, CompositeExplicitAutograd, library) {
  library.impl("structures", structures);
}

TORCH_LIBRARY_IMPL(aimle, Meta, library) { library.impl("structures", structures_meta); }

}  // namespace
}  // namespace aimle::ops
