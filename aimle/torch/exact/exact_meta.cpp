// Shapes of the ops of exact distributions, for torch.compile and meta tensors.
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "aimle/torch/exact/exact_ops.h"

namespace aimle::ops {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<at::Tensor>;

ExactInput checked(std::string_view op, const Tensor& scores, std::string_view solver,
                   const MaybeTensor& mask, const MaybeTensor& row_data, int64_t check) {
  const ExactInput input = exact_input(op, scores, solver, mask, row_data, check);
  if (has_known_instance(*input.solver, scores)) fit(input);
  return input;
}

Tensor shape_of_log_partition(const Tensor& scores, std::string_view solver,
                              const MaybeTensor& mask, const MaybeTensor& row_data, int64_t check) {
  const ExactInput input = checked("log_partition", scores, solver, mask, row_data, check);
  return at::empty_symint(input.rows.sym_batch(), scores.options());
}

Tensor shape_of_marginals(const Tensor& scores, std::string_view solver, const MaybeTensor& mask,
                          const MaybeTensor& row_data, int64_t check) {
  checked("marginals", scores, solver, mask, row_data, check);
  return at::empty_symint(scores.sym_sizes(), scores.options());
}

Tensor shape_of_covariance(const Tensor& scores, const Tensor& v, std::string_view solver,
                           const MaybeTensor& mask, const MaybeTensor& row_data, int64_t check) {
  checked("covariance", scores, solver, mask, row_data, check);
  check_v(v, scores);
  return at::empty_symint(scores.sym_sizes(), scores.options());
}

Tensor shape_of_exact_sample(const Tensor& scores, const Tensor& key, c10::SymInt samples,
                             std::string_view solver, const MaybeTensor& mask,
                             const MaybeTensor& row_data, int64_t check) {
  const ExactInput input = checked("exact_sample", scores, solver, mask, row_data, check);
  check_sample(key, scores, samples);
  return at::empty_symint(sample_sizes(input, samples), scores.options());
}

TORCH_LIBRARY_IMPL(aimle, Meta, library) {
  library.impl("log_partition", shape_of_log_partition);
  library.impl("marginals", shape_of_marginals);
  library.impl("covariance", shape_of_covariance);
  library.impl("exact_sample", shape_of_exact_sample);
}

}  // namespace
}  // namespace aimle::ops
