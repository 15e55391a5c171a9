// What the estimators and losses over solutions of whole instances share: their checks, their solver
// calls and their inner products.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aimle/torch/layer.h"

namespace aimle {

/// The last dims dimensions, counted from the end.
std::vector<int64_t> trailing(int64_t dims);

/// theta where it is finite and not masked, zero elsewhere.
at::Tensor free_entries(const at::Tensor& theta, const std::optional<at::Tensor>& mask);

/// Solutions of x [..., *instance]; x are costs if sense is kMin.
at::Tensor solve_in(Sense sense, const SolverSpec& solver, const at::Tensor& x,
                    const LayerCall& call);

/// The call for an undirected theta.
LayerCall undirected(LayerCall call, const SolverSpec& solver);

/// A target structure in the layout of an undirected theta. It has the same value in both
/// directions, which is also their mean.
at::Tensor undirected_target(const at::Tensor& target, const at::Tensor& theta,
                             const SolverSpec& solver);

/// Throws ValueError unless the solver supports the sense.
void check_sense_of(std::string_view name, const SolverSpec& solver, Sense sense);

/// Throws ValueError unless theta has the dimensions of an instance.
void check_dims(const std::string& name, const at::Tensor& theta, const SolverSpec& solver);

}  // namespace aimle
