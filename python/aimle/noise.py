"""Noise distributions: settings objects, sampled by ``aimle.sample_noise`` and the layers.

A draw is a pure function of (key, instance, sample, element). It is always a float32 value, with
the same bits for any batch, thread count and device.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, overload

import torch
from torch import Tensor
from torch._ops import OpOverload

from aimle import _library  # noqa: F401  (registers the ops)
from aimle.settings.checks import check_int
from aimle.settings.names import with_known_names

_ops = torch.ops.aimle


class Noise(ABC):
    """Base class of the distributions: frozen settings that can be sampled."""

    #: The name of the distribution in the ops.
    name: ClassVar[str]

    @property
    @abstractmethod
    def stddev(self) -> float:
        """The standard deviation."""

    @property
    def mean(self) -> float:
        """The mean."""
        return 0.0

    @abstractmethod
    def sample(
        self, key: Tensor, batch: Sequence[int], samples: int, instance: Sequence[int]
    ) -> Tensor:
        """float32 [*batch, samples, *instance] on the device of key; samples = -1 omits it."""


class _Standard(Noise):
    """A distribution without settings."""

    _op: ClassVar[OpOverload]
    stddev: ClassVar[float]
    mean: ClassVar[float] = 0.0

    def sample(
        self, key: Tensor, batch: Sequence[int], samples: int, instance: Sequence[int]
    ) -> Tensor:
        return self._op(key, batch, samples, instance)


@with_known_names
@dataclass(frozen=True)
class Gumbel(_Standard):
    """Gumbel(0, 1): mean 0.5772, standard deviation 1.2825. With Argmax it samples a softmax."""

    name: ClassVar[str] = "gumbel"
    _op = _ops.gumbel.default
    stddev = math.pi / math.sqrt(6.0)
    mean = 0.5772156649015329  # Euler's constant


@with_known_names
@dataclass(frozen=True)
class Normal(_Standard):
    """The standard normal."""

    name: ClassVar[str] = "normal"
    _op = _ops.normal.default
    stddev = 1.0


@with_known_names
@dataclass(frozen=True)
class Logistic(_Standard):
    """The standard logistic, the difference of two Gumbel draws: standard deviation 1.8138."""

    name: ClassVar[str] = "logistic"
    _op = _ops.logistic.default
    stddev = math.pi / math.sqrt(3.0)


@with_known_names
@dataclass(frozen=True)
class SumOfGamma(Noise):
    """Sum-of-Gamma (Niepert, Minervini, Franceschi, NeurIPS 2021).

    (1/k) (sum_{i=1..s} Gamma(1/k, scale k/i) - ln s) with s = nb_iterations. The sum of k draws
    tends to Gumbel(0, 1) as s grows, so k should be the number of ones in a solution: k for k of n,
    n - 1 for a spanning tree of n vertices. (The authors, and ``aimle train nri``, use n for trees:
    5 % less noise for ten vertices.)
    """

    name: ClassVar[str] = "sum_of_gamma"

    k: int
    nb_iterations: int = 10
    _stddev: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, high in (("k", 1_000_000), ("nb_iterations", 1000)):
            value = check_int("SumOfGamma", name, getattr(self, name), 1, high)
            object.__setattr__(self, name, value)
        variance = sum(1.0 / i**2 for i in range(1, self.nb_iterations + 1)) / self.k
        object.__setattr__(self, "_stddev", math.sqrt(variance))  # read at every call of a layer

    def table(self, device: torch.device | str | None = None) -> Tensor:
        """The quantile table that sampling reads, float32."""
        return _ops.sum_of_gamma_table.default(self.k, self.nb_iterations, device=device)

    @property
    def stddev(self) -> float:
        return self._stddev

    @property
    def mean(self) -> float:
        mean = -math.log(self.nb_iterations)
        for i in range(1, self.nb_iterations + 1):
            mean += 1.0 / i
        return mean / self.k

    def sample(
        self, key: Tensor, batch: Sequence[int], samples: int, instance: Sequence[int]
    ) -> Tensor:
        return _ops.sum_of_gamma.default(key, batch, samples, instance, self.table(key.device))


_BY_NAME: dict[str, Callable[[], Noise]] = {each.name: each for each in (Gumbel, Normal, Logistic)}


@overload
def as_noise(noise: Noise | str) -> Noise: ...
@overload
def as_noise(noise: Noise | str | None) -> Noise | None: ...


def as_noise(noise: Noise | str | None) -> Noise | None:
    """Converts a distribution, its name, or None (no noise) to a distribution or None."""
    if noise is None or isinstance(noise, Noise):
        return noise
    if isinstance(noise, str) and noise in _BY_NAME:
        return _BY_NAME[noise]()
    allowed = ", ".join(repr(name) for name in _BY_NAME)
    given = f"the class {noise.__name__} itself" if isinstance(noise, type) else repr(noise)
    raise ValueError(
        f"[aimle] expected noise to be {allowed}, None, or an object such as "
        f"aimle.SumOfGamma(k=10), but got {given}"
    )
