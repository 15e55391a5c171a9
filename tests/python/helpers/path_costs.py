"""Helpers for tests of noise over path costs."""

import torch
from torch import Tensor

import aimle

GRID = aimle.GridPath()
KEY = torch.tensor([5, 8])
SCALED = aimle.AdaptiveTarget(scale="noise", rule="multiplicative")
NOISES = {"gumbel": aimle.Gumbel(), "sum of gamma": aimle.SumOfGamma(3, 20)}


class Paths:
    """A callable whose solutions vary in size."""

    sense, instance_dims, fixed_size = "min", 2, False
    has_costs = True

    def __call__(self, costs: Tensor) -> Tensor:
        return GRID(costs)
