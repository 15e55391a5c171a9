// What every solver op checks and returns, whatever the device: shapes, types and devices of its
// tensors. Sizes may be symbolic.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string_view>
#include <tuple>

#include "aimle/registry/registry.h"

namespace aimle::ops {

/// The tensors of one call.
///   scores  [*batch, *instance] float32, float64, bfloat16 or float16
///   mask    bool, broadcastable to the shape of scores; true = may be chosen
///   row_k   int64, broadcastable to *batch; replaces k row by row, for solvers that take it
struct SolverInput {
  std::string_view op;
  std::string_view name = "scores";  // what messages call the scores
  at::Tensor scores;
  int64_t instance_dims = 1;
  std::optional<at::Tensor> mask = std::nullopt;
  std::optional<at::Tensor> row_k = std::nullopt;
  /// How many entries are chosen where row_k does not say, for messages.
  int64_t k = 1;

  c10::SymIntArrayRef sym_batch() const {
    return scores.sym_sizes().slice(0, scores.dim() - instance_dims);
  }
  at::IntArrayRef batch() const { return scores.sizes().slice(0, scores.dim() - instance_dims); }
};

/// The solver that the text names; ValueError if there is none.
std::shared_ptr<const UnsizedSolver> parse_solver_text(std::string_view text);

/// The solver for the instances of these scores, whose sizes must be known; ValueError if there is
/// none. `k_per_row`: rows come with a k each.
Solver fit(const UnsizedSolver& solver, const at::Tensor& scores, bool k_per_row);
/// Whether the sizes of an instance are numbers, not symbols of a compiler.
bool has_known_instance(const UnsizedSolver& solver, const at::Tensor& scores);

/// A call of the solver itself; TypeError for a k that it does not take.
SolverInput solver_input(const UnsizedSolver& solver, const at::Tensor& scores,
                         const std::optional<at::Tensor>& mask,
                         const std::optional<at::Tensor>& row_k);
void check_takes_k(std::string_view owner, const SolverKind& solver);

/// ValueError or TypeError that names the op, the argument, its value and what is allowed.
void check_input(const SolverInput& input);

/// ValueError if a layer cannot use the solver in this sense: negated scores would be costs below
/// zero.
void check_sense(std::string_view owner, const SolverKind& solver, Sense sense);

/// The tensors as kernels read them: contiguous, at full shape, float32 or float64.
struct SolverTensors {
  at::Tensor scores;  // [*batch, *instance]
  at::Tensor mask;    // [*batch, *instance] or undefined
  at::Tensor row_k;   // [*batch] or undefined

  const bool* mask_data() const { return mask.defined() ? mask.const_data_ptr<bool>() : nullptr; }
  const int64_t* k_data() const {
    return row_k.defined() ? row_k.const_data_ptr<int64_t>() : nullptr;
  }
};
SolverTensors prepare(const SolverInput& input);

/// Uninitialised (z, status): z of the shape of scores, status uint8 [*batch].
std::tuple<at::Tensor, at::Tensor> empty_solution(const SolverInput& input, at::ScalarType type);

}  // namespace aimle::ops
