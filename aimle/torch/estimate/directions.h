// Converts trees over directed scores to trees over their sums: both directions of an edge share
// its noise. The layers do the same inside their ops (layer_autograd.cpp). Also ops (ops.cpp).
#pragma once

#include <ATen/core/Tensor.h>

#include "aimle/torch/functions.h"

namespace aimle {

/// theta_ij + theta_ji of every edge, if x has an entry for each direction of the solver's graph;
/// for a mask, whether both directions are allowed. Otherwise x itself.
at::Tensor undirected(const at::Tensor& x, const SolverSpec& solver);

/// The inverse: writes the value of an edge in z to both directions, if `like` has both. Otherwise
/// z itself.
at::Tensor directed(const at::Tensor& z, const at::Tensor& like, const SolverSpec& solver);

}  // namespace aimle
