#include "aimle/torch/layer/solution_sizes.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "aimle/torch/tensor/find_op.h"
#include "aimle/torch/tensor/without_gradient.h"

namespace aimle::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

at::Tensor as_rows(const at::Tensor& z) { return z.dim() > 1 ? z.flatten(1) : z.unsqueeze(-1); }

/// The least of the values for which `counts` is true; infinity if there is none.
at::Tensor least(const at::Tensor& values, const at::Tensor& counts) {
  const at::Tensor none = at::full({1}, kInfinity, values.options());
  return at::cat({at::where(counts, values, kInfinity), none}).amin();
}

at::Tensor composed(const at::Tensor& z, const at::Tensor& other) {
  const at::Tensor left = as_rows(z), right = as_rows(other).expand_as(left);
  const at::Tensor differ = left.ne(right).any(1);
  const at::Tensor ones = at::cat(
      {left.sum(1, /*keepdim=*/false, at::kDouble), right.sum(1, /*keepdim=*/false, at::kDouble)});
  const at::Tensor counts = at::cat({differ, differ}).logical_and(ones.isfinite());
  return at::stack({least(ones, counts), least(ones.neg(), counts)});
}

template <class T>
at::Tensor in_one_pass(const at::Tensor& z, const at::Tensor& other) {
  const at::Tensor left = as_rows(z).contiguous(), right = as_rows(other).contiguous();
  const int64_t rows = left.size(0), n = left.size(1), step = right.size(0) == 1 ? 0 : n;
  const T *x = left.const_data_ptr<T>(), *y = right.const_data_ptr<T>();
  at::Tensor sizes = unknown_sizes();
  double* least = sizes.mutable_data_ptr<double>();
  for (int64_t row = 0; row < rows; ++row, x += n, y += step) {
    bool differ = false;
    for (int64_t j = 0; j < n; ++j) differ |= x[j] != y[j];
    if (!differ) continue;
    double ones[2] = {0.0, 0.0};
    for (int64_t j = 0; j < n; ++j) {
      ones[0] += static_cast<double>(x[j]);
      ones[1] += static_cast<double>(y[j]);
    }
    for (const double size : ones) {
      if (!std::isfinite(size)) continue;
      least[0] = std::min(least[0], size);
      least[1] = std::min(least[1], -size);
    }
  }
  return sizes;
}

at::Tensor on_cpu(const at::Tensor& z, const at::Tensor& other) {
  const bool same_rows = z.dim() == other.dim() && z.sizes().slice(1) == other.sizes().slice(1);
  if (z.dim() == 0 || !same_rows || z.scalar_type() != other.scalar_type()) {
    return composed(z, other);
  }
  if (z.scalar_type() == at::kFloat) return in_one_pass<float>(z, other);
  if (z.scalar_type() == at::kDouble) return in_one_pass<double>(z, other);
  return composed(z, other);
}

TORCH_LIBRARY_FRAGMENT(aimle, library) {
  library.def("solution_sizes(Tensor z, Tensor other) -> Tensor", {at::Tag::pt2_compliant_tag});
}
TORCH_LIBRARY_IMPL(aimle, CompositeExplicitAutograd, library) {
  library.impl("solution_sizes", composed);
}
TORCH_LIBRARY_IMPL(aimle, CPU, library) { library.impl("solution_sizes", on_cpu); }
TORCH_LIBRARY_IMPL(aimle, Autograd, library) { library.impl("solution_sizes", without_gradient()); }

}  // namespace

at::Tensor unknown_sizes() { return at::full({2}, kInfinity, at::kDouble); }

at::Tensor solution_sizes(const at::Tensor& z, const at::Tensor& other) {
  using Op = at::Tensor(const at::Tensor&, const at::Tensor&);
  static const auto op = find_op<Op>("aimle::solution_sizes");
  return op.call(z, other);
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
