#include "aimle/torch/layer/solution_sizes.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <torch/library.h>

#include <limits>

namespace aimle::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

at::Tensor as_rows(const at::Tensor& z) { return z.dim() > 1 ? z.flatten(1) : z.unsqueeze(-1); }

/// The least of the values for which `counts` is true; infinity if there is none.
at::Tensor least(const at::Tensor& values, const at::Tensor& counts) {
  const at::Tensor none = at::full({1}, kInfinity, values.options());
  return at::cat({at::where(counts, values, kInfinity), none}).amin();
}

TORCH_LIBRARY_FRAGMENT(aimle, library) {
  library.def("solution_sizes(Tensor z, Tensor other) -> Tensor", {at::Tag::pt2_compliant_tag});
  library.impl("solution_sizes",
               torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd, solution_sizes));
}

}  // namespace

at::Tensor unknown_sizes() { return at::full({2}, kInfinity, at::kDouble); }

at::Tensor solution_sizes(const at::Tensor& z, const at::Tensor& other) {
  const at::Tensor left = as_rows(z), right = as_rows(other).expand_as(left);
  const at::Tensor differ = left.ne(right).any(1);
  const at::Tensor ones = at::cat(
      {left.sum(1, /*keepdim=*/false, at::kDouble), right.sum(1, /*keepdim=*/false, at::kDouble)});
  const at::Tensor counts = at::cat({differ, differ}).logical_and(ones.isfinite());
  return at::stack({least(ones, counts), least(ones.neg(), counts)});
}

StepResult step_for_sizes(const at::Tensor& sizes,
                          const std::function<StepResult(bool fixed_size)>& step) {
  if (sizes.is_cpu()) {
    const at::Tensor known = sizes.contiguous();
    const double* both = known.const_data_ptr<double>();
    return step(both[0] == -both[1]);
  }
  const at::Tensor fixed = sizes.select(0, 0).eq(sizes.select(0, 1).neg());
  const StepResult if_fixed = step(true), if_not = step(false);
  return {at::where(fixed, std::get<0>(if_fixed), std::get<0>(if_not)),
          at::where(fixed, std::get<1>(if_fixed), std::get<1>(if_not)),
          at::where(fixed, std::get<2>(if_fixed), std::get<2>(if_not)),
          at::where(fixed, std::get<3>(if_fixed), std::get<3>(if_not))};
}

}  // namespace aimle::ops
