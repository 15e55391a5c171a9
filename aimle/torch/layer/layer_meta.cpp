// Shapes of the layer ops, for torch.compile and meta tensors.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include "aimle/torch/layer/layer_ops.h"
#include "aimle/torch/layer/solution_sizes.h"
#include "aimle/torch/tensor/dtype.h"

namespace aimle::ops {
namespace {

using Two = std::tuple<at::Tensor, at::Tensor>;

at::Tensor empty(const at::SymDimVector& sizes, const at::Tensor& theta, at::ScalarType type) {
  return at::empty_symint(sizes, theta.options().dtype(type));
}

Two forward_meta(ArgumentReader& reader) {
  const LayerInput input = reader.input();
  const LayerSettings& settings = reader.settings();
  check_layer(input, settings);
  return {empty(result_sizes(input, settings), input.theta, input.theta.scalar_type()),
          empty(bits_sizes(input, settings), input.theta, at::kByte)};
}

at::Tensor like_theta(const at::Tensor& theta) {
  return at::empty_symint(theta.sym_sizes(), theta.options());
}

at::Tensor backward_meta(ArgumentReader& reader) {
  const at::Tensor dy = reader.tensor();
  reader.tensor();
  const LayerInput input = reader.input();
  const LayerSettings& settings = reader.settings();
  check_layer(input, settings);
  check_gradient(dy, input, settings);
  return like_theta(input.theta);
}

at::Tensor perturb_meta(ArgumentReader& reader) {
  const LayerInput input = reader.input();
  const LayerSettings& settings = reader.settings();
  check_layer(input, settings);
  return empty(score_sizes(input, settings), input.theta, native_type(input.theta));
}

StepResult step_meta(ArgumentReader& reader) {
  const at::Tensor dy = reader.tensor();
  const LayerInput input = reader.input();
  const LayerSettings& settings = reader.settings();
  check_layer(input, settings);
  check_gradient(dy, input, settings);
  const c10::SymInt rows = gradient_rows(settings);
  const auto sizes = score_sizes(input, settings);
  const c10::SymInt count = example_count(input, settings);
  return {empty(sizes, input.theta, native_type(input.theta)),
          empty(sizes, input.theta, native_type(input.theta)),
          empty({count, rows + 2}, input.theta, at::kDouble),
          empty({count, rows}, input.theta, at::kByte)};
}

at::Tensor difference_meta(ArgumentReader& reader) {
  for (int i = 0; i < 4; ++i) reader.tensor();
  return like_theta(reader.input().theta);
}

at::Tensor straight_through_meta(ArgumentReader& reader) {
  reader.tensor();
  return like_theta(reader.input().theta);
}

std::tuple<> apply_counts_meta(ArgumentReader&) { return {}; }

TORCH_LIBRARY_IMPL(aimle, Meta, library) {
  impl_boxed<&forward_meta>(library, "perturbed_map_forward");
  impl_boxed<&backward_meta>(library, "perturbed_map_backward");
  impl_boxed<&perturb_meta>(library, "perturb");
  impl_boxed<&step_meta>(library, "step");
  impl_boxed<&difference_meta>(library, "difference");
  impl_boxed<&straight_through_meta>(library, "straight_through");
  impl_boxed<&apply_counts_meta>(library, "apply_counts");
}

}  // namespace
}  // namespace aimle::ops
