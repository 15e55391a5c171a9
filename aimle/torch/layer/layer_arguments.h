// One call of a layer: the arguments of the `perturbed_map` ops, checked once for all devices.
//
//   theta      [*batch, *instance]; every instance is one example
//   key        int64 [2], on theta's device or on the CPU
//   mask       bool, broadcastable to theta
//   row_data   int64, k or data of the instances; see solver_checks.h
//   table      of Sum-of-Gamma noise
//   alpha, gbar, updates, memory, stats
//              the controller's state, buffers of the layer. Only backward reads and writes them,
//              and apply_counts, if several processes update the state together.
//   sizes      of the solutions of a callable, of which `step` takes whether they have one size;
//              see solution_sizes.h
//   settings   see layer_settings.h
//   result     z [*batch, S, *instance] ("samples"), [B S, *instance] ("flat") or
//              [*batch, *instance] ("mean")
#pragma once

#include <ATen/DimVector.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <optional>

#include "aimle/estimate/stats.h"
#include "aimle/torch/layer/layer_settings.h"

namespace aimle::ops {

/// The state that a backward pass updates; undefined members do not exist in the layer.
struct LayerState {
  at::Tensor alpha;    // float64 []
  at::Tensor gbar;     // float64 []
  at::Tensor updates;  // int64 []
  at::Tensor memory;   // float64 []: the reach or the velocity, see ControllerState
  at::Tensor stats;    // float64 [kLayerStats], or followed by the kWaitingCounts

  /// The counts to which backward adds instead of updating the state; null if it updates the state.
  double* waiting() const {
    if (!stats.defined() || stats.numel() == kLayerStats) return nullptr;
    return stats.mutable_data_ptr<double>() + kLayerStats;
  }
};

struct LayerInput {
  at::Tensor theta;
  at::Tensor key;
  std::optional<at::Tensor> mask;
  std::optional<at::Tensor> row_data;
  std::optional<at::Tensor> table;
};

/// The solver for instances of theta's shape and for their data.
Solver make_solver(const LayerInput& input, const LayerSettings& settings);

/// The call in the form that the checks of the solvers take.
SolverInput solver_input(const LayerInput& input, const LayerSettings& settings);

/// Checks shapes, types and devices of everything except dy.
void check_layer(const LayerInput& input, const LayerSettings& settings);
/// Checks dy against the result's shape and type.
void check_gradient(const at::Tensor& dy, const LayerInput& input, const LayerSettings& settings);
/// Checks that the state of an adaptive target exists, and the types of all state.
void check_state(const LayerState& state, const LayerInput& input, const LayerSettings& settings);
/// Checks counts [kWaitingCounts] for `apply_counts`, and the state that it updates.
void check_counts(const at::Tensor& counts, const LayerState& state, const LayerSettings& settings);
/// Checks a tensor that one layer op passes to another.
void check_handed(const char* name, const at::Tensor& tensor, at::ScalarType type,
                  c10::SymIntArrayRef sizes, const LayerInput& input);

/// The number of examples, and the number of rows of dy per example.
c10::SymInt example_count(const LayerInput& input, const LayerSettings& settings);
int64_t gradient_rows(const LayerSettings& settings);

/// The shape of z, and of `bits` (uint8; empty if nothing is kept): the packed solutions, followed
/// for thresholds by space for the KeptRivals of all rows. Sizes may be symbolic.
at::SymDimVector result_sizes(const LayerInput& input, const LayerSettings& settings);
at::SymDimVector bits_sizes(const LayerInput& input, const LayerSettings& settings);
/// The shape of the scores that a callable solver gets: [B S, *instance].
at::SymDimVector score_sizes(const LayerInput& input, const LayerSettings& settings);

}  // namespace aimle::ops
