// structures: every structure of a solver, uint8 [N, *instance] of 0 and 1; see exact/enumerate.h.
// `solver` is its text, `instance` the sizes of one instance, `data` its data besides the scores,
// if the solver takes data.
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>

#include "aimle/torch/solve/solver_checks.h"
#include "aimle/torch/tensor/value_error.h"

namespace aimle::ops {
namespace {

using MaybeNumbers = at::OptionalIntArrayRef;

Solver solver_for(std::string_view text, at::IntArrayRef instance, const MaybeNumbers& data) {
  const auto unsized = parse_solver_text(text);
  const SolverKind& kind = unsized->kind();
  TORCH_CHECK_VALUE(static_cast<int64_t>(instance.size()) == kind.instance_dims,
                    "[aimle::structures] expected ", kind.instance_dims,
                    " sizes of an instance of \"", kind.name, "\" but got ", instance);
  Brought brought;
  if (data) {
    TORCH_CHECK_TYPE(kind.takes_data, "[aimle::structures] ", kind.name, " takes no data");
    brought = {.data_length = static_cast<int64_t>(data->size()), .data = data->data()};
  }
  return with_value_errors([&] {
    return unsized->fit({instance.begin(), instance.end()}, brought);
  });
}

double structure_count(std::string_view solver, at::IntArrayRef instance,
                       const MaybeNumbers& data) {
  return solver_for(solver, instance, data).structure_count();
}

struct Listed {
  std::vector<int64_t> sizes;  // [N, *instance]
  std::vector<uint8_t> z;
};

Listed list(std::string_view text, at::IntArrayRef instance, const MaybeNumbers& data) {
  const Solver native = solver_for(text, instance, data);
  Listed listed{.z = with_value_errors([&] { return native.structures(); })};
  // A tree of one vertex is one structure without entries.
  const int64_t size = native.size();
  listed.sizes = {size == 0 ? 1 : static_cast<int64_t>(listed.z.size()) / size};
  listed.sizes.insert(listed.sizes.end(), instance.begin(), instance.end());
  return listed;
}

at::Tensor structures(std::string_view solver, at::IntArrayRef instance, const MaybeNumbers& data,
                      std::optional<at::Device> device) {
  const Listed listed = list(solver, instance, data);
  at::Tensor z = at::empty(listed.sizes, at::kByte);
  std::copy(listed.z.begin(), listed.z.end(), z.mutable_data_ptr<uint8_t>());
  return device ? z.to(*device) : z;
}

at::Tensor structures_meta(std::string_view solver, at::IntArrayRef instance,
                           const MaybeNumbers& data, std::optional<at::Device>) {
  return at::empty(list(solver, instance, data).sizes,
                   at::TensorOptions(at::kMeta).dtype(at::kByte));
}

TORCH_LIBRARY_FRAGMENT(aimle, library) {
  library.def("structure_count(str solver, int[] instance, int[]? data=None) -> float",
              structure_count);
  library.def(
      "structures(str solver, int[] instance, int[]? data=None, *, Device? device=None) -> Tensor",
      {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(aimle, CompositeExplicitAutograd, library) {
  library.impl("structures", structures);
}

TORCH_LIBRARY_IMPL(aimle, Meta, library) { library.impl("structures", structures_meta); }

}  // namespace
}  // namespace aimle::ops
