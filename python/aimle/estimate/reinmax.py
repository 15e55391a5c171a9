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

from aimle.estimate.sampled import SampledEstimator, straight_through
from aimle.noise import Gumbel
from aimle.solvers import Argmax


class ReinMax(SampledEstimator):
    """Hard samples of softmax(theta) with the gradient above; see the module."""

    applies_to = (Argmax,)

    def forward(
        self, theta: Tensor, *, mask: Tensor | None = None, key: Tensor | None = None
    ) -> Tensor:
        """theta [*batch, n], mask broadcastable to it, key int64 [2]."""
        self._check(theta)
        allowed = torch.isfinite(theta) if mask is None else mask & torch.isfinite(theta)
        free = torch.where(allowed, theta, 0.0).unsqueeze(-2)
        shown = theta.detach().masked_fill(~allowed, -torch.inf).unsqueeze(-2)
        z = self.solver(shown + self._noise(Gumbel(), theta, key))
        pi = torch.softmax(shown, -1)
        soft = 2 * _jacobian((pi + z) / 2, free) - _jacobian(pi, free) / 2
        return self._shaped(straight_through(z, soft))


def _jacobian(p: Tensor, theta: Tensor) -> Tensor:
    """J(p) theta."""
    return p * (theta - (p * theta).sum(-1, keepdim=True))
