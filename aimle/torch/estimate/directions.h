// Trees over directed scores as trees over their sums: both directions of an edge share its noise.
// The layers do the same inside their ops (layer_autograd.cpp). Private to aimle/torch/estimate.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "aimle/torch/functions.h"

namespace aimle {

/// How many vertices the graph has whose directed entries theta has, if it has any.
std::optional<int64_t> vertices_of(const SolverSpec& solver, const at::Tensor& theta);

/// theta_ij + theta_ji of every edge; of a call's mask, whether both directions are allowed.
/// Without vertices what is given.
at::Tensor fold(const at::Tensor& theta, std::optional<int64_t> vertices);
LayerCall fold(const LayerCall& call, std::optional<int64_t> vertices);

/// What an edge has, written to both directions. Without vertices what is given.
at::Tensor spread(const at::Tensor& z, std::optional<int64_t> vertices);

}  // namespace aimle
