"""Lattices with three paths, whose probabilities under Normal noise are known.

The totals of three paths under Normal noise are jointly Normal. A path is the best one if two
differences of totals are positive, which has a probability by quadrature over one of them.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

import aimle

#: A solver, and the shape of a theta with three paths.
THREE_PATHS: dict[str, tuple[aimle.Solver, tuple[int, ...]]] = {
    "cells": (aimle.LatticePath(), (2, 2)),
    "straight cells": (aimle.LatticePath("straight"), (2, 3)),
    "diagonal cells": (aimle.LatticePath("diagonal"), (4, 2)),
    "moves": (aimle.LatticeMoves(), (2, 2, 3)),
    "straight moves": (aimle.LatticeMoves("straight"), (3, 2, 3)),
    "diagonal moves": (aimle.LatticeMoves("diagonal"), (4, 2, 3)),
}


def paths_of(lattice: str) -> Tensor:
    """The three paths, [3, n]."""
    solver, shape = THREE_PATHS[lattice]
    z = aimle.exact.structures(solver, torch.zeros(shape)).double().flatten(1)
    assert len(z) == 3
    return z


def _both_positive(means: Tensor, covariance: Tensor) -> Tensor:
    """P(u > 0, v > 0) of two Normal variables."""
    spread = math.sqrt(covariance[0, 0])
    slope = (covariance[0, 1] / covariance[0, 0]).item()
    rest = math.sqrt(covariance[1, 1] - slope * covariance[0, 1])
    step = 0.002
    points = (torch.arange(0.0, 10.0, step, dtype=torch.float64) + step / 2) * spread  # values of u
    deviation = points - means[0]
    density = torch.exp(-0.5 * (deviation / spread).square()) / math.sqrt(2 * math.pi)
    return (density * torch.special.ndtr((means[1] + slope * deviation) / rest)).sum() * step


def probabilities(lattice: str, theta: Tensor, tau: float) -> Tensor:
    """P(the best path of theta + tau Normal = z) for the three paths, differentiable in theta."""
    z = paths_of(lattice)
    result = []
    for path in range(3):
        ahead = z[path] - z[[other for other in range(3) if other != path]]  # [2, n]
        result.append(_both_positive(ahead @ theta, tau**2 * ahead @ ahead.T))
    found = torch.stack(result)
    return found / found.sum()


def mean_path(lattice: str, theta: Tensor, tau: float) -> Tensor:
    """E of the best path of theta + tau Normal, [n]."""
    return probabilities(lattice, theta, tau) @ paths_of(lattice)


def expected(lattice: str, theta: Tensor, tau: float, value: Callable[[Tensor], Tensor]) -> Tensor:
    """E value(z), where z is that path."""
    return torch.tensordot(
        probabilities(lattice, theta, tau), value(paths_of(lattice)), dims=([0], [0])
    )
