// Checks and results of solver ops on any device: shapes, types and devices of their tensors. Sizes
// may be symbolic.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string_view>

#include "aimle/registry/registry.h"

namespace aimle::ops {

/// The tensors of one call.
///   scores  [*batch, *instance] float32, float64, bfloat16 or float16
///   mask    bool, broadcastable to the shape of scores; true = may be chosen
///   row_data  int64, data of instances besides their scores. For solvers that take k: their k,
///             broadcastable to *batch. For solvers that take data: [length] numbers shared by
///             all, or broadcastable to [*batch, length]
struct SolverInput {
  std::string_view op;
  std::string_view name = "scores";  // the name of the scores in messages
  at::Tensor scores;
  int64_t instance_dims = 1;
  std::optional<at::Tensor> mask = std::nullopt;
  std::optional<at::Tensor> row_data = std::nullopt;
  int64_t data_dims = 0;  // 1 if row_data are data, 0 if they are k
  /// The number of chosen entries if row_data do not give it, for messages.
  int64_t k = 1;

  c10::SymIntArrayRef sym_batch() const {
    return scores.sym_sizes().slice(0, scores.dim() - instance_dims);
  }
  at::IntArrayRef batch() const { return scores.sizes().slice(0, scores.dim() - instance_dims); }
};

/// The solver for the text; throws ValueError if there is none.
std::shared_ptr<const UnsizedSolver> parse_solver_text(std::string_view text);

/// The solver for the instances of these scores, whose sizes must be known; throws ValueError if
/// there is none.
Solver fit(const UnsizedSolver& solver, const at::Tensor& scores,
           const std::optional<at::Tensor>& row_data);
/// Whether the sizes of an instance are known numbers, not symbols of a compiler.
bool has_known_instance(const UnsizedSolver& solver, const at::Tensor& scores);

/// A call of the solver itself; throws TypeError for row_data that it does not take.
SolverInput solver_input(const UnsizedSolver& solver, const at::Tensor& scores,
                         const std::optional<at::Tensor>& mask,
                         const std::optional<at::Tensor>& row_data);
void check_takes_row_data(std::string_view owner, const SolverKind& solver);

/// Throws ValueError or TypeError naming the op, the argument, its value and what is allowed.
void check_input(const SolverInput& input);

/// Throws ValueError if a layer cannot use the solver in this sense: negated scores would be costs
/// below zero.
void check_sense(std::string_view owner, const SolverKind& solver, Sense sense);

/// The tensors as kernels read them: contiguous, expanded to full shape, float32 or float64.
struct SolverTensors {
  at::Tensor scores;  // [*batch, *instance]
  at::Tensor mask;    // [*batch, *instance] or undefined
  at::Tensor k;       // [*batch] or undefined
  at::Tensor data;    // [length] or [*batch, length] or undefined

  const bool* mask_data() const { return mask.defined() ? mask.const_data_ptr<bool>() : nullptr; }
  const int64_t* k_data() const { return k.defined() ? k.const_data_ptr<int64_t>() : nullptr; }
  InstanceData instance_data() const {
    if (!data.defined()) return {};
    return {.numbers = data.const_data_ptr<int64_t>(),
            .stride = data.dim() == 1 ? 0 : data.size(-1)};
  }
};
SolverTensors prepare(const SolverInput& input);

}  // namespace aimle::ops
