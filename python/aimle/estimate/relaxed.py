"""Relaxations: a soft sample replaces the discrete one, and PyTorch differentiates it.

As the temperature t decreases, the samples become discrete and the gradients noisy. All are biased
for the gradient of E f(z) of the discrete z, because they differentiate another expectation. f must
accept soft values in (0, 1), unless ``hard`` is set: then f sees the discrete sample, which gets
the gradient of the soft one. In eval mode z is the hard solution of theta.

softsub and l2x repeat a step k times. The solver's k is the number of rounds or draws, and a k per
row may be smaller, so that no value is read on the host and the module compiles as one graph. Rows
with a larger k are an error on the CPU, and NaN on a GPU or in compiled code.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from typing_extensions import Unpack

from aimle.estimate.sampled import SampledEstimator
from aimle.settings.checks import check_bool, check_int, check_not_negative, check_positive
from aimle.settings.shared import SampleSettings
from aimle.solvers import Solver
from aimle.structures import Argmax, TopK

_ops = torch.ops.aimle


def anneal(
    step: int, *, start: float = 1.0, rate: float = 3e-5, floor: float = 0.5, every: int = 1000
) -> float:
    """A temperature that decays during training: max(start exp(-rate step), floor).

    It changes only when step is a multiple of every.

        layer.temperature = aimle.anneal(step)    # before each step
    """
    check_int("anneal", "step", step, 0)
    check_int("anneal", "every", every, 1)
    for name, value in (("start", start), ("floor", floor)):
        check_positive("anneal", name, value)
    check_not_negative("anneal", "rate", rate)
    return max(start * math.exp(-rate * (step - step % every)), floor)


class Relaxation(SampledEstimator):
    """A soft sample at a temperature, which PyTorch differentiates.

    Biased, because it differentiates the mean of f over soft samples. In eval mode z is the hard
    solution of theta.

    Args:
        temperature: t > 0, of the softmax, kept in a buffer; ``layer.temperature = t`` changes it
            without recompiling. The noise has scale 1: to scale it by tau, pass theta / tau.
        hard: return the discrete sample with the gradient of the soft one.
    The other arguments are those of ``SampledEstimator``.
    """

    temperature: Tensor | Any
    _notes = dict.fromkeys(
        ("theta_noise_temperature", "noise_temperature", "input_noise_temperature", "sigma"),
        "its noise has scale 1, and 'temperature' is that of its softmax",
    )

    def __init__(
        self,
        solver: Solver,
        *,
        temperature: float = 1.0,
        hard: bool = False,
        **settings: Unpack[SampleSettings],
    ) -> None:
        super().__init__(solver, **settings)
        self.hard = check_bool(type(self).__name__, "hard", hard)
        self.register_buffer("temperature", torch.tensor(0.0))
        self.set_temperature(temperature)

    def set_temperature(self, temperature: float) -> None:
        """Sets the temperature."""
        check_positive(type(self).__name__, "temperature", temperature)
        self.temperature.fill_(float(temperature))

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "temperature" and not isinstance(value, Tensor):
            self.set_temperature(value)
        else:
            super().__setattr__(name, value)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, temperature={self.temperature.item():g}, hard={self.hard}"

    def _relaxation(self) -> tuple[Any, ...]:
        return self.temperature, self.hard


class GumbelSoftmax(Relaxation):
    """softmax((theta + G) / t), one of n.

    Jang, Gu, Poole, ICLR 2017; Maddison, Mnih, Teh, "The Concrete Distribution", ICLR 2017. The
    arguments are those of ``Relaxation``.
    """

    applies_to = (Argmax,)
    _op = _ops.gumbel_softmax.default


class SoftSub(Relaxation):
    """k rounds of softmax over theta + G, each round added up: entries in (0, 1) that sum to k.

    Round i takes a_i = softmax(w_i / t) and sets w_{i+1} = w_i + log(1 - a_i), which suppresses the
    entries taken in all earlier rounds. Xie & Ermon, "Reparameterizable Subset Sampling via
    Continuous Relaxations", IJCAI 2019. The arguments are those of ``Relaxation``.
    """

    applies_to = (TopK,)
    _op = _ops.softsub.default


class L2X(Relaxation):
    """The entry-wise maximum of k concrete draws: soft only, sums to at most k.

    Chen, Song, Wainwright, Jordan, "Learning to Explain", ICML 2018. The arguments are those of
    ``Relaxation`` except hard.
    """

    applies_to = (TopK,)
    _op = _ops.l2x.default

    def __init__(
        self, solver: Solver, *, temperature: float = 1.0, **settings: Unpack[SampleSettings]
    ) -> None:
        super().__init__(solver, temperature=temperature, **settings)
