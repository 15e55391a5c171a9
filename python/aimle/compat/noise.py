"""Noise distributions: the base class ``BaseNoiseDistribution``, and the authors' two.

Their ``sample(shape)`` draws from torch's generator as torch.distributions does, so a seed gives
the same numbers as the authors' classes. ``aimle``, ``imle`` and ``ste`` draw these distributions
with the library's own kernels (keyed, so that backward repeats the draw and nothing of size
[B, S, n] is stored), unless ``reference=True``. For a custom class, ``sample`` is always called,
and its result is added to theta, even if theta are costs.
"""

import contextlib
import math
from abc import ABC, abstractmethod

import torch
from torch import Size, Tensor
from torch.distributions import Gamma, Gumbel

import aimle.noise as native


class BaseNoiseDistribution(ABC):
    """Base class for custom noise: define ``sample``."""

    @abstractmethod
    def sample(self, shape: Size) -> Tensor:
        """Noise of this shape, [B, S M, *instance] when called by the estimators."""


class SumOfGammaNoiseDistribution(BaseNoiseDistribution):
    """Sum-of-Gamma noise (Niepert, Minervini, Franceschi, NeurIPS 2021).

    (1/k) (sum_{i=1..s} Gamma(1/k, scale k/i) - ln s) with s = nb_iterations.
    """

    def __init__(
        self, k: float, nb_iterations: int = 10, device: torch.device | None = None
    ) -> None:
        self.k = k
        self.nb_iterations = nb_iterations
        self.device = device

    def sample(self, shape: Size) -> Tensor:
        shape = torch.Size(shape)
        total = torch.zeros(shape, dtype=torch.float32, device=self.device)
        concentration = torch.tensor(1.0 / self.k, device=self.device)
        for i in range(1, self.nb_iterations + 1):
            rate = torch.tensor(i / self.k, device=self.device)
            total = total + Gamma(concentration, rate).sample(shape)
        return (total - math.log(self.nb_iterations)) / self.k


class GumbelNoiseDistribution(BaseNoiseDistribution):
    """Gumbel noise with a location and a scale."""

    def __init__(
        self, location: float = 0.0, scale: float = 1.0, device: torch.device | None = None
    ) -> None:
        self.location = location
        self.scale = scale
        self.device = device

    def sample(self, shape: Size) -> Tensor:
        location = torch.tensor(self.location, dtype=torch.float32, device=self.device)
        scale = torch.tensor(self.scale, dtype=torch.float32, device=self.device)
        return Gumbel(location, scale).sample(torch.Size(shape))


def is_ours(distribution: object) -> bool:
    """True for the two classes above, False for anything derived from them."""
    return type(distribution) in (SumOfGammaNoiseDistribution, GumbelNoiseDistribution)


def as_native(distribution: object) -> tuple[native.Noise, float] | None:
    """The library's noise with this distribution and its factor; None if there is none."""
    if isinstance(distribution, native.Noise):
        return distribution, 1.0
    if type(distribution) is GumbelNoiseDistribution and distribution.location == 0.0:
        return native.Gumbel(), float(distribution.scale)
    if type(distribution) is SumOfGammaNoiseDistribution and distribution.k == int(distribution.k):
        with contextlib.suppress(ValueError):  # outside the range of the tables
            return native.SumOfGamma(int(distribution.k), distribution.nb_iterations), 1.0
    return None
