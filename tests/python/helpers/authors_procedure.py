"""The authors' procedure restated in NumPy, float64, as an oracle for aimle.compat.

One backward pass, with theta [B, n], noise e [B, S M, n], dy [B S M, n] and the factor a of theta:

    step       lambda: beta (fixed), or beta times a ratio of norms (adaptive)
               theta_R = a theta - lambda dy, theta_L = a theta + lambda dy or a theta;
               signs the other way round where theta is a cost
    solve      z_R, z_L = MAP(theta_R,L + tau e), averaged over M
    difference G = z_L - z_R, halved if central                                     [B, S, n]
    adapt      gbar <- g gbar + (1 - g) nnz(G) / (B S)
               u <- momentum u + eta (gbar below c) or - eta, beta <- max(0, beta + u)
    divide     by lambda (adaptive), by max(beta, eps) or not at all (fixed)
    average    over S, and negate for costs

As the authors have it (reference=True) the ratio is that of the norms of all repeated theta and all
dy to step, of theta not repeated to divide, and "below" is <. Mended, an example has one lambda,
beta times the mean over its samples of ||theta|| / ||dy||, to step and to divide; "below" is <=.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import oracles
import torch
from torch import Size, Tensor

from aimle.compat.noise import BaseNoiseDistribution


@dataclass
class Procedure:
    solve: Callable[[np.ndarray], np.ndarray]  # [N, n] -> [N, n]
    samples: int = 1
    marginal: int = 1
    tau_theta: float = 1.0
    tau_target: float = 1.0
    central: bool = False
    costs: bool = False
    factor: float = 1.0
    beta: float = 1.0
    adaptive: bool = False
    reference: bool = False
    scaling: bool = False
    step: float = 1e-4
    momentum: float = 0.0
    decay: float = 0.9
    target_norm: float = 1.0
    reuses_solution: bool = False
    gbar: float = 1.0
    last_move: float = 0.0

    def repeat(self, theta: np.ndarray) -> np.ndarray:
        return np.repeat(theta, self.samples * self.marginal, axis=0)

    def forward(self, theta: np.ndarray, noise: np.ndarray) -> np.ndarray:
        rows = self.repeat(theta)
        return self.solve(rows + self.tau_theta * noise.reshape(rows.shape))

    def backward(self, theta: np.ndarray, noise: np.ndarray, dy: np.ndarray) -> np.ndarray:
        batch, rows = len(theta), self.repeat(theta)
        to_step, to_divide = self.step_sizes(theta, rows, dy)
        down = -1.0 if self.costs else 1.0
        right = self.factor * rows - down * to_step[:, None] * dy
        left = self.factor * rows + down * self.central * to_step[:, None] * dy
        eps = self.tau_target * noise.reshape(rows.shape)
        z_left = self.forward(theta, noise) if self.reuses_solution else self.solve(left + eps)
        z_right = self.solve(right + eps)

        groups = (batch, self.samples, self.marginal, -1)
        difference = (z_left - z_right).reshape(groups).mean(axis=2)
        if self.central:
            difference /= 2.0
        if self.adaptive:
            self.adapt(difference)
        return down * (difference / to_divide[:, None, None]).mean(axis=1)

    def step_sizes(
        self, theta: np.ndarray, rows: np.ndarray, dy: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """lambda [B S M] to step with and [B] to divide by."""
        norm = np.linalg.norm
        if not self.adaptive:
            divisor = max(self.beta, 1e-7) if self.scaling else 1.0
            return np.full(len(dy), self.beta), np.full(len(theta), divisor)
        if self.reference:
            size = 0.0 if norm(dy) == 0 else 1.0 / norm(dy)
            to_step = np.full(len(dy), self.beta * norm(rows) * size)
            to_divide = np.full(len(theta), self.beta * norm(theta) * size)
        else:
            ratio = norm(rows, axis=1) / norm(dy, axis=1)
            to_divide = self.beta * ratio.reshape(len(theta), -1).mean(axis=1)
            to_step = self.repeat(to_divide)
        return to_step, np.where(to_divide > 0, to_divide, 1.0)

    def adapt(self, difference: np.ndarray) -> None:
        count = np.count_nonzero(difference) / (difference.shape[0] * difference.shape[1])
        self.gbar = self.decay * self.gbar + (1.0 - self.decay) * count
        at_target = self.gbar == self.target_norm and not self.reference
        raises = self.gbar < self.target_norm or at_target
        self.last_move = self.momentum * self.last_move + (self.step if raises else -self.step)
        self.beta = max(0.0, self.beta + self.last_move)


class RecordedNoise(BaseNoiseDistribution):
    """Gumbel noise in float64 that can be read again."""

    def __init__(self, seed: int, device: torch.device | str = "cpu") -> None:
        super().__init__()
        self.random, self.device = np.random.default_rng(seed), device

    def sample(self, shape: Size) -> Tensor:
        self.drawn = self.random.gumbel(size=tuple(shape))
        return torch.from_numpy(self.drawn).to(self.device)


class ConstantNoise(BaseNoiseDistribution):
    def __init__(self, constant: float) -> None:
        self.constant = constant

    def sample(self, shape: Size) -> Tensor:
        return torch.full(shape, self.constant)


def choose(k: int, sign: float = 1.0):
    """Top-k (of the lowest for sign = -1) by NumPy, and the same as a callable on tensors."""

    def solve(rows: np.ndarray) -> np.ndarray:
        return np.stack([oracles.topk(sign * row, k) for row in rows])

    def function(rows: Tensor) -> Tensor:
        return torch.from_numpy(solve(rows.cpu().numpy())).to(rows.device)

    return solve, function


def backward_of(
    differentiable, theta: np.ndarray, dy: np.ndarray, device="cpu"
) -> tuple[Tensor, np.ndarray]:
    """z, and the gradient of theta under dy."""
    leaf = torch.tensor(theta, device=device, requires_grad=True)
    z = differentiable(leaf)
    z.backward(torch.tensor(dy, device=device))
    return z.detach(), leaf.grad.cpu().numpy()
