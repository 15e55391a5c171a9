#include "aimle/torch/solve/solver_checks.h"

#include <c10/util/Exception.h>
#include <c10/util/SmallVector.h>

#include <algorithm>

#include "aimle/torch/tensor/dtype.h"
#include "aimle/torch/tensor/value_error.h"

namespace aimle::ops {
namespace {

bool broadcastable(c10::SymIntArrayRef from, c10::SymIntArrayRef to) {
  if (from.size() > to.size()) return false;
  const size_t offset = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] != to[offset + i] && from[i] != 1) return false;
  }
  return true;
}

void check_same_device(const SolverInput& input, std::string_view name, const at::Tensor& other) {
  TORCH_CHECK_VALUE(other.device() == input.scores.device(), "[aimle::", input.op, "] expected ",
                    name, " on the device of ", input.name, ", ", input.scores.device(),
                    ", but it is on ", other.device());
}

void check_row_data(const SolverInput& input, const at::Tensor& data) {
  const char* name = input.data_dims == 0 ? "k per row" : "data";
  TORCH_CHECK_TYPE(data.scalar_type() == at::kLong, "[aimle::", input.op, "] expected ", name,
                   " of int64 but got ", dtype_name(data), ": pass ",
                   input.data_dims == 0 ? "k" : "data", ".long()");
  TORCH_CHECK_VALUE(data.dim() >= input.data_dims, "[aimle::", input.op, "] expected ", name,
                    " of shape [length] or [*batch, length] but got shape ", data.sym_sizes());
  TORCH_CHECK_VALUE(
      broadcastable(data.sym_sizes().slice(0, data.dim() - input.data_dims), input.sym_batch()),
      "[aimle::", input.op, "] expected ", name, " broadcastable to the batch shape, ",
      input.sym_batch(), ", but got shape ", data.sym_sizes());
  check_same_device(input, name, data);
}

}  // namespace

void check_input(const SolverInput& input) {
  check_scores_type(input.op, input.scores, input.name);
  TORCH_CHECK_VALUE(input.scores.dim() >= input.instance_dims, "[aimle::", input.op, "] expected ",
                    input.name, " of at least ", input.instance_dims,
                    input.instance_dims == 1 ? " dimension" : " dimensions", " but got shape ",
                    input.scores.sym_sizes());
  if (input.mask) {
    TORCH_CHECK_TYPE(input.mask->scalar_type() == at::kBool, "[aimle::", input.op,
                     "] expected a mask of bool but got ", dtype_name(*input.mask),
                     ": pass mask.bool()");
    TORCH_CHECK_VALUE(broadcastable(input.mask->sym_sizes(), input.scores.sym_sizes()),
                      "[aimle::", input.op, "] expected a mask broadcastable to the shape of ",
                      input.name, ", ", input.scores.sym_sizes(), ", but got shape ",
                      input.mask->sym_sizes());
    check_same_device(input, "mask", *input.mask);
  }
  if (input.row_data) check_row_data(input, *input.row_data);
}

void check_sense(std::string_view owner, const SolverKind& solver, Sense sense) {
  TORCH_CHECK_VALUE(!solver.has_costs || sense == solver.sense, "[aimle::", owner,
                    "] expected sense \"min\" for ", solver.name,
                    ", whose costs are never below zero, but got \"max\": give it costs, for "
                    "example softplus(-scores), and leave out sense");
}

std::shared_ptr<const UnsizedSolver> parse_solver_text(std::string_view text) {
  return with_value_errors([&] { return parse_solver(text); });
}

Solver fit(const UnsizedSolver& solver, const at::Tensor& scores,
           const std::optional<at::Tensor>& row_data) {
  c10::SmallVector<int64_t, 4> instance;
  for (const c10::SymInt& size :
       scores.sym_sizes().slice(scores.dim() - solver.kind().instance_dims)) {
    instance.push_back(size.expect_int());  // only these: the batch may be symbolic
  }
  Brought brought{.k = row_data && solver.kind().takes_k};
  if (row_data && solver.kind().takes_data) {
    brought.data_length = row_data->sym_size(-1).expect_int();
  }
  return with_value_errors([&] { return solver.fit({instance.data(), instance.size()}, brought); });
}

bool has_known_instance(const UnsizedSolver& solver, const at::Tensor& scores) {
  const auto sizes = scores.sym_sizes().slice(scores.dim() - solver.kind().instance_dims);
  return std::none_of(sizes.begin(), sizes.end(),
                      [](const c10::SymInt& size) { return size.is_symbolic(); });
}

void check_takes_row_data(std::string_view owner, const SolverKind& solver) {
  TORCH_CHECK_TYPE(solver.takes_k || solver.takes_data, "[aimle::", owner, "] ", solver.name,
                   " takes no k; only solvers such as topk do");
}

SolverInput solver_input(const UnsizedSolver& solver, const at::Tensor& scores,
                         const std::optional<at::Tensor>& mask,
                         const std::optional<at::Tensor>& row_data) {
  if (row_data) check_takes_row_data(solver.kind().name, solver.kind());
  return {.op = solver.kind().name,
          .scores = scores,
          .instance_dims = solver.kind().instance_dims,
          .mask = mask,
          .row_data = row_data,
          .data_dims = solver.kind().takes_data,
          .k = solver.solution_size().ones};
}

SolverTensors prepare(const SolverInput& input) {
  SolverTensors tensors{.scores = input.scores.to(native_type(input.scores)).contiguous()};
  if (input.mask) tensors.mask = input.mask->expand(input.scores.sizes()).contiguous();
  if (!input.row_data) return tensors;
  const at::Tensor& given = *input.row_data;
  if (input.data_dims == 0) {
    tensors.k = given.expand(input.batch()).contiguous();
  } else if (given.numel() == given.size(-1)) {
    tensors.data = given.flatten().contiguous();
  } else {
    std::vector<int64_t> sizes = input.batch().vec();
    sizes.push_back(given.size(-1));
    tensors.data = given.expand(sizes).contiguous();
  }
  return tensors;
}

}  // namespace aimle::ops
