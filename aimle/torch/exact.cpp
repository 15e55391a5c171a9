#include "aimle/torch/exact.h"

#include "aimle/torch/dtype.h"
#include "aimle/torch/solvers.h"

namespace aimle::ops {
namespace {

void check_solver(std::string_view op, std::string_view solver, at::IntArrayRef args) {
  const size_t expected = solver == "argmax" ? 0 : 1;
  TORCH_CHECK_VALUE(
      solver == "argmax" || solver == "topk" || solver == "spanning_tree", "[aimle::", op,
      "] expected solver to be \"argmax\", \"topk\" or \"spanning_tree\" but got \"", solver, "\"");
  TORCH_CHECK_VALUE(args.size() == expected, "[aimle::", op, "] expected ", expected,
                    " solver_args for \"", solver, "\" but got ", args);
}

}  // namespace

ExactInput exact_input(std::string_view op, const at::Tensor& scores, std::string_view solver,
                       at::IntArrayRef solver_args, const std::optional<at::Tensor>& mask,
                       const std::optional<at::Tensor>& k, int64_t check) {
  check_solver(op, solver, solver_args);
  TORCH_CHECK_TYPE(!k || solver == "topk", "[aimle::", op, "] \"", solver,
                   "\" takes no k; only \"topk\" does");
  const ExactInput input{.rows = {.op = op,
                                  .scores = scores,
                                  .mask = mask,
                                  .row_k = k,
                                  .k = solver == "topk" ? solver_args[0] : 1},
                         .solver = solver,
                         .solver_args = solver_args,
                         .check = check_level(op, check)};
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
  TORCH_CHECK_VALUE(key.dim() == 1 && key.sym_size(0) == 2,
                    "[aimle::exact_sample] expected a key of shape [2] but got ", key.sym_sizes());
  TORCH_CHECK_VALUE(key.device() == scores.device() || key.is_cpu(),
                    "[aimle::exact_sample] expected a key on the device of scores, ",
                    scores.device(), ", or on the CPU but it is on ", key.device());
  TORCH_CHECK_VALUE(samples >= 1, "[aimle::exact_sample] expected samples >= 1 but got ", samples);
}

Distribution make_distribution(const ExactInput& input) {
  if (input.solver == "argmax") return argmax_settings(input.rows.scores);
  if (input.solver == "spanning_tree") {
    return spanning_tree_settings(input.rows.scores, input.solver_args[0]);
  }
  return topk_settings(input.rows.scores, input.solver_args[0], input.rows.row_k.has_value());
}

std::vector<c10::SymInt> sample_sizes(const at::Tensor& scores, const c10::SymInt& samples) {
  std::vector<c10::SymInt> sizes(scores.sym_sizes().begin(), scores.sym_sizes().end());
  sizes.insert(sizes.end() - 1, samples);
  return sizes;
}

}  // namespace aimle::ops
