#include "aimle/torch/executor.h"
#include "aimle/torch/solvers.h"

namespace aimle::ops {
namespace {

template <class T, MapSolver S>
void solve_all(const S& solver, const SolverTensors& tensors, at::Tensor& z, at::Tensor& status) {
  const Rows<T> rows{
      .count = status.numel(),
      .scores = tensors.scores.const_data_ptr<T>(),
      .mask = tensors.mask.defined() ? tensors.mask.const_data_ptr<bool>() : nullptr,
      .k = tensors.row_k.defined() ? tensors.row_k.const_data_ptr<int64_t>() : nullptr,
      .z = z.mutable_data_ptr<T>(),
      .status = reinterpret_cast<Status*>(status.mutable_data_ptr<uint8_t>())};
  aimle::solve(solver, rows, torch_threads());
}

struct Cpu {
  template <class Settings>
  static Solution solve(const SolverInput& input, Check check, Settings settings) {
    const auto solver = settings();
    const SolverTensors tensors = prepare(input);
    auto [z, status] = empty_solution(input, tensors.scores.scalar_type());
    if (z.scalar_type() == at::kDouble) {
      solve_all<double>(solver, tensors, z, status);
    } else {
      solve_all<float>(solver, tensors, z, status);
    }
    raise_for_status(input, status, check);
    return {z.to(input.scores.scalar_type()), status};
  }
};

TORCH_LIBRARY_IMPL(aimle, CPU, library) { register_solvers<Cpu>(library); }

}  // namespace
}  // namespace aimle::ops
