// Accuracy of predicted trees, and the data that the report draws.
#pragma once

#include <ATen/core/Tensor.h>

#include "experiments/engine/options.h"

namespace aimle::experiments::nri {

/// truth bool, predicted 0 or 1, both [B, pairs] -> float64 [6], sums over graphs: precision,
/// recall and accuracy of the predicted pairs, then of their complement.
at::Tensor score_trees(const at::Tensor& truth, const at::Tensor& predicted);

/// A list of {"path": [n, frames, 2], "predicted": [n, frames - 1, 2], "true_tree": [[i, j], ...],
/// "tree": [[i, j], ...]}: paths and predicted [B, n, frames (- 1), 2], trees [B, pairs].
Json describe_graphs(const at::Tensor& paths, const at::Tensor& truth, const at::Tensor& tree,
                     const at::Tensor& predicted);

}  // namespace aimle::experiments::nri
