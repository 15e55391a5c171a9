#include "aimle/torch/exact/exact_ops.h"

#include "aimle/base/join.h"
#include "aimle/torch/noise/noise_ops.h"
#include "aimle/torch/tensor/dtype.h"

namespace aimle::ops {
namespace {

std::vector<std::string> solvers_with_exact() {
  std::vector<std::string> names;
  for (const std::string& name : solver_names()) {
    if (solver_kind(name).exact != nullptr) names.push_back(name);
  }
  return names;
}

/// Results of meta tensors and torch.compile: only their sizes.
struct ShapesOnly {
  static at::Tensor empty(const ExactInput& input, c10::SymIntArrayRef sizes) {
    if (has_known_instance(*input.solver, input.rows.scores)) fit(input);
    return at::empty_symint(sizes, input.rows.scores.options());
  }
  static at::Tensor evaluate(const ExactInput& input, at::Tensor ExactOutputs::*,
                             c10::SymIntArrayRef sizes, const at::Tensor&) {
    return empty(input, sizes);
  }
  static at::Tensor sample(const ExactInput& input, const at::Tensor&, const c10::SymInt&,
                           c10::SymIntArrayRef sizes) {
    return empty(input, sizes);
  }
};

TORCH_LIBRARY_IMPL(aimle, Meta, library) { register_exact<ShapesOnly>(library); }

}  // namespace

ExactInput exact_input(std::string_view op, const at::Tensor& scores, std::string_view solver,
                       const std::optional<at::Tensor>& mask,
                       const std::optional<at::Tensor>& row_data, int64_t check) {
  const auto unsized = parse_solver_text(solver);
  const SolverKind& kind = unsized->kind();
  TORCH_CHECK_VALUE(kind.exact != nullptr, "[aimle::", op, "] expected solver to be ",
                    join(solvers_with_exact(), " or "), " but got \"", kind.name,
                    "\", which has no exact distribution in closed form");
  if (row_data) check_takes_row_data(op, kind);
  ExactInput input{.rows = solver_input(*unsized, scores, mask, row_data),
                   .solver = unsized,
                   .check = check_level(op, check)};
  input.rows.op = op;
  check_input(input.rows);
  return input;
}

void check_v(const at::Tensor& v, const at::Tensor& scores) {
  TORCH_CHECK_VALUE(v.sym_sizes() == scores.sym_sizes(),
                    "[aimle::covariance] expected v of the shape of scores, ", scores.sym_sizes(),
                    ", but got ", v.sym_sizes());
  TORCH_CHECK_TYPE(v.scalar_type() == scores.scalar_type(),
                   "[aimle::covariance] expected v of the type of scores, ", dtype_name(scores),
                   ", but got ", dtype_name(v));
  TORCH_CHECK_VALUE(v.device() == scores.device(),
                    "[aimle::covariance] expected v on the device of scores, ", scores.device(),
                    ", but it is on ", v.device());
}

void check_sample(const at::Tensor& key, const at::Tensor& scores, const c10::SymInt& samples) {
  TORCH_CHECK_TYPE(key.scalar_type() == at::kLong,
                   "[aimle::exact_sample] expected a key of int64 but got ", dtype_name(key));
  TORCH_CHECK_VALUE(has_shape_of_key(key),
                    "[aimle::exact_sample] expected a key of shape [2] or [3] but got ",
                    key.sym_sizes());
  TORCH_CHECK_VALUE(key.device() == scores.device() || key.is_cpu(),
                    "[aimle::exact_sample] expected a key on the device of scores, ",
                    scores.device(), ", or on the CPU but it is on ", key.device());
  TORCH_CHECK_VALUE(samples >= 1, "[aimle::exact_sample] expected samples >= 1 but got ", samples);
}

Solver fit(const ExactInput& input) {
  return fit(*input.solver, input.rows.scores, input.rows.row_data);
}

std::vector<c10::SymInt> sample_sizes(const ExactInput& input, const c10::SymInt& samples) {
  std::vector<c10::SymInt> sizes = input.rows.scores.sym_sizes().vec();
  sizes.insert(sizes.end() - input.rows.instance_dims, samples);
  return sizes;
}

}  // namespace aimle::ops
