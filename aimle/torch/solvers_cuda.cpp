#include "aimle/torch/device_context.h"
#include "aimle/torch/solvers.h"

namespace aimle::ops {
namespace {

template <class T, MapSolver S>
void solve_all(const S& solver, const SolverTensors& tensors, at::Tensor& z, at::Tensor& status,
               const cuda::Context& context) {
  const cuda::RowSource<T> source{
      .examples = {
          .count = status.numel(),
          .n = solver.size(),
          .theta = tensors.scores.const_data_ptr<T>(),
          .mask = tensors.mask.defined() ? tensors.mask.const_data_ptr<bool>() : nullptr,
          .k = tensors.row_k.defined() ? tensors.row_k.const_data_ptr<int64_t>() : nullptr}};
  cuda::map_rows(
      solver, source,
      cuda::RowSink<T>{.z = z.mutable_data_ptr<T>(), .status = status.mutable_data_ptr<uint8_t>()},
      context);
}

struct Cuda {
  template <class Settings>
  static Solution solve(const SolverInput& input, Check check, Settings settings) {
    const auto solver = settings();
    const DeviceContext context(input.scores);
    const SolverTensors tensors = prepare(input);
    auto [z, status] = empty_solution(input, tensors.scores.scalar_type());
    if (z.scalar_type() == at::kDouble) {
      solve_all<double>(solver, tensors, z, status, context.get());
    } else {
      solve_all<float>(solver, tensors, z, status, context.get());
    }
    raise_for_status(input, status, check);
    return {z.to(input.scores.scalar_type()), status};
  }
};

TORCH_LIBRARY_IMPL(aimle, CUDA, library) { register_solvers<Cuda>(library); }

}  // namespace
}  // namespace aimle::ops
