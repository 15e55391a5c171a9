// The solver ops, written once for all devices: schema arguments in, settings of the core's solvers
// out. A device is a struct with
//
//   template <class Settings>
//   static Solution solve(const SolverInput& input, Check check, Settings settings);
//
// where `settings()` gives the validated solver for these scores; one file per device defines it
// and registers the ops (solvers_cpu.cpp; the shapes alone: solvers_meta.cpp). Schemas:
// library.cpp.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <optional>
#include <string_view>
#include <tuple>

#include "aimle/map/solver.h"
#include "aimle/torch/solver_checks.h"
#include "aimle/torch/solver_status.h"

namespace aimle::ops {

using Solution = std::tuple<at::Tensor, at::Tensor>;

// Validated settings for scores of this shape; ValueError if there are none.
Argmax argmax_settings(const at::Tensor& scores);
TopK topk_settings(const at::Tensor& scores, int64_t k, bool has_row_k);
SpanningTree spanning_tree_settings(const at::Tensor& scores, int64_t vertices);
GridPath grid_path_settings(const at::Tensor& scores, int64_t neighbourhood, at::IntArrayRef source,
                            at::IntArrayRef target, std::string_view negative);

template <class Device, class Settings>
Solution solve_checked(const SolverInput& input, int64_t check, Settings settings) {
  check_input(input);
  return Device::solve(input, check_level(input.op, check), settings);
}

template <class Device>
Solution argmax(const at::Tensor& scores, const std::optional<at::Tensor>& mask, int64_t check) {
  return solve_checked<Device>({.op = "argmax", .scores = scores, .mask = mask}, check,
                               [&] { return argmax_settings(scores); });
}

template <class Device>
Solution topk(const at::Tensor& scores, int64_t k, const std::optional<at::Tensor>& mask,
              const std::optional<at::Tensor>& row_k, int64_t check) {
  return solve_checked<Device>(
      {.op = "topk", .scores = scores, .mask = mask, .row_k = row_k, .k = k}, check,
      [&] { return topk_settings(scores, k, row_k.has_value()); });
}

template <class Device>
Solution spanning_tree(const at::Tensor& scores, int64_t vertices,
                       const std::optional<at::Tensor>& mask, int64_t check) {
  return solve_checked<Device>({.op = "spanning_tree", .scores = scores, .mask = mask}, check,
                               [&] { return spanning_tree_settings(scores, vertices); });
}

template <class Device>
Solution grid_path(const at::Tensor& scores, int64_t neighbourhood, at::IntArrayRef source,
                   at::IntArrayRef target, std::string_view negative,
                   const std::optional<at::Tensor>& mask, int64_t check) {
  return solve_checked<Device>(
      {.op = "grid_path", .scores = scores, .instance_dims = 2, .mask = mask}, check,
      [&] { return grid_path_settings(scores, neighbourhood, source, target, negative); });
}

template <class Device>
void register_solvers(torch::Library& library) {
  library.impl("argmax", argmax<Device>);
  library.impl("topk", topk<Device>);
  library.impl("spanning_tree", spanning_tree<Device>);
  library.impl("grid_path", grid_path<Device>);
}

}  // namespace aimle::ops
