"""Layers over directed trees, and the sums over both directions of their edges."""

import torch
from oracles import arcs, edges
from torch import Tensor

import aimle

N = 5
TREE = aimle.SpanningTree(N)
KEY = torch.tensor([11, 3])
_POSITION = {arc: index for index, arc in enumerate(arcs(N))}
FIRST = torch.tensor([_POSITION[i, j] for i, j in edges(N)])
SECOND = torch.tensor([_POSITION[j, i] for i, j in edges(N)])

LAYERS = {
    "noise scale": lambda **settings: aimle.AIMLE(
        TREE,
        target=aimle.AdaptiveTarget(
            scale="noise", rule="multiplicative", alpha_range=(0.1, 10.0), initial_alpha=1.0
        ),
        **settings,
    ),
    "noise scale, forward": lambda **settings: aimle.AIMLE(
        TREE,
        symmetric_perturbation=False,
        target=aimle.AdaptiveTarget(scale="noise", initial_alpha=0.5),
        **settings,
    ),
    "imle": lambda **settings: aimle.IMLE(TREE, 2.0, **settings),
    "imle_central": lambda **settings: aimle.IMLE(
        TREE, 2.0, symmetric_perturbation=True, **settings
    ),
    "thresholds": lambda **settings: aimle.Thresholds(TREE, **settings),
    "ste": lambda **settings: aimle.STE(TREE, **settings),
    "sst": lambda **settings: aimle.SST(TREE, **settings),
    "sst, hard": lambda **settings: aimle.SST(TREE, hard=True, **settings),
}


def folded(rows: Tensor) -> Tensor:
    return rows[..., FIRST.to(rows.device)] + rows[..., SECOND.to(rows.device)]


def spread(rows: Tensor) -> Tensor:
    out = rows.new_zeros(*rows.shape[:-1], 2 * len(FIRST))
    for part in (FIRST, SECOND):
        out = out.index_copy(-1, part.to(rows.device), rows)
    return out
