"""AIMLE with a central difference, written in plain PyTorch.

The same mathematics as ``aimle.AIMLE`` (one lambda per example), with the solver as a callable.
bench_layer.py uses it for comparison, and checks it against the layer on the same noise.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor


class PlainAIMLE(torch.nn.Module):
    """theta [B, *instance] -> z [B, S, *instance]."""

    def __init__(
        self,
        solver: Callable[[Tensor], Tensor],
        noise: Callable[[torch.Size], Tensor],
        nb_samples: int,
        minimise: bool = False,
        alpha: float = 0.0,
    ) -> None:
        super().__init__()
        self.solver, self.noise, self.nb_samples = solver, noise, nb_samples
        self.sign = -1.0 if minimise else 1.0
        self.alpha, self.gbar = alpha, 1.0

    def forward(self, theta: Tensor) -> Tensor:
        return _PlainFunction.apply(theta, self)

    def solve(self, x: Tensor) -> Tensor:
        return self.solver((self.sign * x).flatten(0, 1)).reshape(x.shape)


class _PlainFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, theta: Tensor, layer: PlainAIMLE) -> Tensor:
        shape = (theta.shape[0], layer.nb_samples, *theta.shape[1:])
        eps = layer.noise(torch.Size(shape))
        ctx.layer = layer
        ctx.save_for_backward(theta, eps)
        return layer.solve(layer.sign * theta.unsqueeze(1) + eps)

    @staticmethod
    def backward(ctx, dy: Tensor) -> tuple[Tensor, None]:
        theta, eps = ctx.saved_tensors
        layer = ctx.layer
        ratio = theta.flatten(1).norm(dim=1)[:, None] / dy.flatten(2).norm(dim=2)
        lambda_ = layer.alpha * ratio.mean(1)
        lambda_ = lambda_.reshape(-1, *(1,) * (dy.dim() - 1))
        centre = layer.sign * theta.unsqueeze(1)
        difference = layer.solve(centre + lambda_ * dy + eps)
        difference -= layer.solve(centre - lambda_ * dy + eps)
        count = (difference != 0).sum().item() / (dy.shape[0] * dy.shape[1])
        layer.gbar = 0.9 * layer.gbar + 0.1 * count
        layer.alpha = max(0.0, layer.alpha + (1e-3 if layer.gbar <= 1.0 else -1e-3))
        scale = 2 * lambda_.squeeze(1)
        gradient = torch.where(scale > 0, difference.sum(1) / scale, 0.0)
        return layer.sign * gradient, None


def topk(k: int) -> Callable[[Tensor], Tensor]:
    """top-k and scatter."""
    return lambda x: torch.zeros_like(x).scatter_(1, x.topk(k).indices, 1.0)


def directed_tree(vertices: int) -> Callable[[Tensor], Tensor]:
    """Maximum spanning trees of directed scores [N, n(n-1)] by SciPy, one after the other."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    senders = [[s for s in range(vertices) if s != r] for r in range(vertices)]
    receiver = np.repeat(np.arange(vertices), vertices - 1)
    sender = np.asarray(senders).ravel()

    def solve(x: Tensor) -> Tensor:
        result = np.zeros(tuple(x.shape), dtype=np.float32)
        for row, scores in zip(result, x.double().numpy(), strict=True):
            full = np.zeros((vertices, vertices))
            full[receiver, sender] = scores
            both = full + full.T
            shift = both.max() + 1.0  # SciPy minimises and takes zeros for missing edges
            tree = minimum_spanning_tree(np.triu(shift - both, 1)).toarray() != 0
            row[:] = (tree | tree.T)[receiver, sender]
        return torch.from_numpy(result)

    return solve


def _dijkstra(cost: np.ndarray) -> np.ndarray:
    height, width = cost.shape
    distance = np.full(cost.shape, np.inf)
    distance[0, 0] = cost[0, 0]
    previous: dict[tuple[int, int], tuple[int, int]] = {}
    heap = [(cost[0, 0], 0, 0)]
    done = np.zeros(cost.shape, dtype=bool)
    while heap:
        d, i, j = heapq.heappop(heap)
        if done[i, j]:
            continue
        done[i, j] = True
        for a in range(max(0, i - 1), min(height, i + 2)):
            for b in range(max(0, j - 1), min(width, j + 2)):
                if d + cost[a, b] < distance[a, b]:
                    distance[a, b] = d + cost[a, b]
                    previous[a, b] = (i, j)
                    heapq.heappush(heap, (distance[a, b], a, b))
    path = np.zeros(cost.shape, dtype=np.float32)
    cell = (height - 1, width - 1)
    while cell != (0, 0):
        path[cell] = 1.0
        cell = previous[cell]
    path[0, 0] = 1.0
    return path


def grid_path(x: Tensor) -> Tensor:
    """Dijkstra in Python, one grid after the other."""
    costs = x.clamp_min(0).numpy()
    return torch.from_numpy(np.stack([_dijkstra(cost) for cost in costs]))


def gumbel(shape: torch.Size) -> Tensor:
    return torch.distributions.Gumbel(0.0, 1.0).sample(shape)


def sum_of_gamma(k: int, iterations: int = 10) -> Callable[[torch.Size], Tensor]:
    """Ten Gamma draws per value."""

    def sample(shape: torch.Size) -> Tensor:
        total = torch.zeros(shape)
        for i in range(1, iterations + 1):
            total += torch.distributions.Gamma(1.0 / k, i / k).sample(shape)
        return (total - np.log(iterations)) / k

    return sample
