"""ReinMax: straight-through for one of n, to second order.

Liu, Dong, Liu, Yu, Gao, "Bridging Discrete and Backpropagation: Straight-Through and Beyond",
NeurIPS 2023. With pi = softmax(theta), z ~ pi, q = (pi + z) / 2 and J(p) = diag(p) - p p':

    g = (2 J(q) - J(pi) / 2) d

The mean over z of g is Heun's rule for f along each pair of choices: unbiased for the gradient of
E f(z) for every quadratic f. No step size, no temperature.
"""

from __future__ import annotations

import torch
from torch import Tensor

from aimle.estimate.sampled import SampledEstimator, hide, straight_through
from aimle.solvers import Argmax


class ReinMax(SampledEstimator):
    """Hard samples of softmax(theta) with the gradient above; see the module."""

    applies_to = (Argmax,)

    def _samples(self, scores: Tensor, k: Tensor | int | None, key: Tensor | None) -> Tensor:
        free = torch.where(torch.isfinite(scores), scores, 0.0).unsqueeze(-2)
        fixed = hide(scores.detach(), torch.isfinite(scores))
        z = self._solved(self._perturbed(fixed, key), k)
        pi = torch.softmax(fixed.unsqueeze(-2), -1)
        soft = 2 * _jacobian((pi + z) / 2, free) - _jacobian(pi, free) / 2
        return straight_through(z, soft)


def _jacobian(p: Tensor, theta: Tensor) -> Tensor:
    """J(p) theta."""
    return p * (theta - (p * theta).sum(-1, keepdim=True))
