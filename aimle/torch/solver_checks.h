// What every solver op checks and returns, whatever the device: shapes, types and devices of its
// tensors. Sizes may be symbolic.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>
#include <tuple>

#include "aimle/map/map.h"

namespace aimle::ops {

/// The tensors of one call.
///   scores  [*batch, *instance] float32, float64, bfloat16 or float16
///   mask    bool, broadcastable to the shape of scores; true = may be chosen
///   row_k   int64, broadcastable to *batch; replaces k row by row (top-k only)
struct SolverInput {
  std::string_view op;
  std::string_view name = "scores";  // what messages call the scores
  at::Tensor scores;
  int64_t instance_dims = 1;
  std::optional<at::Tensor> mask = std::nullopt;
  std::optional<at::Tensor> row_k = std::nullopt;
  /// How many entries are chosen where row_k does not say (argmax: 1).
  int64_t k = 1;

  c10::SymIntArrayRef sym_batch() const {
    return scores.sym_sizes().slice(0, scores.dim() - instance_dims);
  }
  at::IntArrayRef batch() const { return scores.sizes().slice(0, scores.dim() - instance_dims); }
};

/// ValueError or TypeError that names the op, the argument, its value and what is allowed.
void check_input(const SolverInput& input);

/// ValueError if a layer cannot use the solver of this name in this sense: grid_path takes negated
/// scores, costs below zero, as zero.
void check_sense(std::string_view owner, std::string_view solver, Sense sense);

/// The tensors as kernels read them: contiguous, at full shape, float32 or float64.
struct SolverTensors {
  at::Tensor scores;  // [*batch, *instance]
  at::Tensor mask;    // [*batch, *instance] or undefined
  at::Tensor row_k;   // [*batch] or undefined
};
SolverTensors prepare(const SolverInput& input);

/// Uninitialised (z, status): z of the shape of scores, status uint8 [*batch].
std::tuple<at::Tensor, at::Tensor> empty_solution(const SolverInput& input, at::ScalarType type);

}  // namespace aimle::ops
