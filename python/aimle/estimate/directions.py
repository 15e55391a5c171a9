"""Trees over directed scores as trees over their sums: both directions of an edge share its noise.

    fold     theta_ij + theta_ji of every edge; of a mask, whether both directions are allowed
    spread   what an edge has, written to both directions

The layers do the same inside their ops (aimle/torch/layer_autograd.cpp).
"""

from __future__ import annotations

import torch
from torch import Tensor

from aimle.solvers import SpanningTree

_ops = torch.ops.aimle


def vertices_of(solver: object, theta: Tensor) -> int | None:
    """How many vertices the graph has whose directed entries theta has; None if it has none."""
    if not isinstance(solver, SpanningTree) or solver.n < 2:
        return None
    return solver.n if theta.shape[-1] == solver.n * (solver.n - 1) else None


def fold(theta: Tensor, vertices: int | None) -> Tensor:
    """theta itself without directions."""
    return theta if vertices is None else _ops.fold_directions.default(theta, vertices)


def fold_mask(mask: Tensor | None, vertices: int | None) -> Tensor | None:
    """For what is folded; one entry that stands for all stays."""
    if mask is None or vertices is None or mask.dim() == 0 or mask.shape[-1] == 1:
        return mask
    return _ops.fold_directions.default(mask, vertices)


def spread(z: Tensor, vertices: int | None) -> Tensor:
    """The opposite of fold: z itself without directions."""
    return z if vertices is None else _ops.spread_directions.default(z, vertices)
