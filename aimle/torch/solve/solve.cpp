// solve: the best structure of every instance, by any solver of the registry, on any device.
//
//   scores [*batch, *instance] -> z like scores, status uint8 [*batch] (a Status each)
//   solver  its text, for example "topk:k=5" (registry/registry.h)
//   mask, row_data, check   see solver_checks.h and solver_status.h
//
// z is piecewise constant in the scores, so it carries no gradient, like torch.argmax.
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <tuple>

#include "aimle/cuda/kernels.h"
#include "aimle/registry/load_library.h"
#include "aimle/torch/solve/solver_checks.h"
#include "aimle/torch/solve/solver_status.h"
#include "aimle/torch/tensor/device_context.h"
#include "aimle/torch/tensor/empty.h"
#include "aimle/torch/tensor/executor.h"
#include "aimle/torch/tensor/value_error.h"
#include "aimle/torch/tensor/without_gradient.h"

namespace aimle::ops {
namespace {

using Solution = std::tuple<at::Tensor, at::Tensor>;
using MaybeTensor = std::optional<at::Tensor>;

struct Cpu {
  template <class T>
  static void run(const Solver& solver, const SolverTensors& tensors, const at::Tensor& z,
                  const at::Tensor& status) {
    const Rows<T> rows{.count = status.numel(),
                       .scores = tensors.scores.const_data_ptr<T>(),
                       .mask = tensors.mask_data(),
                       .k = tensors.k_data(),
                       .data = tensors.instance_data(),
                       .z = z.mutable_data_ptr<T>(),
                       .status = reinterpret_cast<Status*>(status.mutable_data_ptr<uint8_t>())};
    aimle::solve(solver, rows, torch_threads());
  }
};

struct Cuda {
  template <class T>
  static void run(const Solver& solver, const SolverTensors& tensors, const at::Tensor& z,
                  const at::Tensor& status) {
    const DeviceContext context(tensors.scores);
    const cuda::RowSource<T> source{.examples = {.count = status.numel(),
                                                 .n = solver.size(),
                                                 .theta = tensors.scores.const_data_ptr<T>(),
                                                 .mask = tensors.mask_data(),
                                                 .k = tensors.k_data(),
                                                 .data = tensors.instance_data()}};
    const cuda::RowSink<T> sink{.z = z.mutable_data_ptr<T>(),
                                .status = status.mutable_data_ptr<uint8_t>()};
    cuda::kernels_of(solver).map_rows(solver, source, sink, context.get());
  }
};

template <class Device>
Solution solve(const at::Tensor& scores, std::string_view text, const MaybeTensor& mask,
               const MaybeTensor& row_data, int64_t check) {
  const auto unsized = parse_solver_text(text);
  const SolverInput input = solver_input(*unsized, scores, mask, row_data);
  check_input(input);
  const Check level = check_level(input.op, check);
  const Solver solver = fit(*unsized, scores, row_data);
  const SolverTensors tensors = prepare(input);
  const at::Tensor z = empty_on(scores.device(), scores.sizes(), tensors.scores.scalar_type());
  const at::Tensor status = empty_on(scores.device(), input.batch(), at::kByte);
  with_value_errors([&] {
    z.scalar_type() == at::kDouble ? Device::template run<double>(solver, tensors, z, status)
                                   : Device::template run<float>(solver, tensors, z, status);
  });
  raise_for_status(input, status, level);
  return {z.to(scores.scalar_type()), status};
}

/// Shapes only, for torch.compile and meta tensors.
Solution solve_meta(const at::Tensor& scores, std::string_view text, const MaybeTensor& mask,
                    const MaybeTensor& row_data, int64_t check) {
  const auto unsized = parse_solver_text(text);
  const SolverInput input = solver_input(*unsized, scores, mask, row_data);
  check_input(input);
  check_level(input.op, check);
  if (has_known_instance(*unsized, scores)) fit(*unsized, scores, row_data);
  return {at::empty_symint(scores.sym_sizes(), scores.options()),
          at::empty_symint(input.sym_batch(), scores.options().dtype(at::kByte))};
}

TORCH_LIBRARY_FRAGMENT(aimle, library) {
  library.def(
      "solve(Tensor scores, str solver, Tensor? mask=None, Tensor? row_data=None, int check=1)"
      " -> (Tensor z, Tensor status)",
      {at::Tag::pt2_compliant_tag});
  // All declarations as JSON, and the canonical text of a solver, for other languages.
  library.def("solvers() -> str", [] { return solvers_as_json(); });
  library.def("load_library(str path) -> str[]", [](std::string path) {
    std::vector<std::string> added;
    with_value_errors([&] { added = load_library(path); });
    return added;
  });
  library.def("solver_text(str solver) -> str",
              [](std::string_view text) { return parse_solver_text(text)->text(); });
}

TORCH_LIBRARY_IMPL(aimle, CPU, library) { library.impl("solve", solve<Cpu>); }
TORCH_LIBRARY_IMPL(aimle, CUDA, library) { library.impl("solve", solve<Cuda>); }
TORCH_LIBRARY_IMPL(aimle, Meta, library) { library.impl("solve", solve_meta); }
TORCH_LIBRARY_IMPL(aimle, Autograd, library) { library.impl("solve", without_gradient()); }

}  // namespace
}  // namespace aimle::ops
