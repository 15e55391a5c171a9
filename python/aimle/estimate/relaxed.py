"""Relaxations: a soft sample takes the place of the discrete one, and PyTorch differentiates it.

    gumbel_softmax   softmax((theta + G) / t): Jang, Gu, Poole, ICLR 2017; Maddison, Mnih, Teh,
                     "The Concrete Distribution", ICLR 2017. One of n.
    softsub          k rounds of softmax, each pushing down what was taken before: Xie & Ermon,
                     "Reparameterizable Subset Sampling via Continuous Relaxations", IJCAI 2019.
                     k of n.
    l2x              the largest of k independent concrete draws, entry by entry: Chen, Song,
                     Wainwright, Jordan, "Learning to Explain", ICML 2018. At most k of n.

t is the temperature of the relaxation: as it falls, the samples become discrete and the gradients
noisy. All are biased for the gradient of E f(z) of the discrete z, since they give the gradient of
another expectation; f must take soft values in (0, 1), unless ``hard``, which shows f the discrete
sample and gives it the soft one's gradient. In eval mode z is the hard solution of theta.

softsub and l2x do something k times. A k per row may be smaller than the solver's, which is the
number of rounds or draws, so that no value is read on the host and the module compiles as one
graph; rows with a larger k are an error on the CPU, and NaN on a GPU or in compiled code.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from torch import Generator, Tensor

from aimle._settings import check_int, check_positive
from aimle.estimate.sampled import SampledEstimator, straight_through
from aimle.layers import Output
from aimle.solvers import Argmax, Solver, TopK


def anneal(
    step: int, *, start: float = 1.0, rate: float = 3e-5, floor: float = 0.5, every: int = 1000
) -> float:
    """A temperature that falls with training: max(start exp(-rate step), floor).

    It changes only where step is a multiple of every. ``layer.set_temperature(aimle.anneal(step))``
    """
    return max(start * math.exp(-rate * (step - step % every)), floor)


class Relaxation(SampledEstimator):
    """A soft sample at a temperature; see the module.

    Args:
        temperature: t > 0, of the softmax, kept in a buffer; ``set_temperature`` changes it without
            recompiling. The noise has scale 1: to scale it by tau, pass theta / tau.
        hard: show the discrete sample, keep the gradient of the soft one.
    The other arguments are those of ``SampledEstimator``.
    """

    temperature: Tensor
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
        nb_samples: int = 1,
        output: Output = "samples",
        noise_in_eval: bool = False,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(
            solver,
            nb_samples=nb_samples,
            output=output,
            noise_in_eval=noise_in_eval,
            generator=generator,
        )
        self.hard = hard
        self.register_buffer("temperature", torch.tensor(0.0))
        self.set_temperature(temperature)

    def set_temperature(self, temperature: float) -> None:
        """Changes the temperature, from now on."""
        check_positive(type(self).__name__, "temperature", temperature)
        self.temperature.fill_(temperature)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, temperature={self.temperature.item():g}, hard={self.hard}"

    def _refuse_bad_rows(self, scores: Tensor, k: Tensor | int | None) -> None:
        """Where nothing waits for it, the solver says what is wrong with k or a mask."""
        if scores.device.type == "cpu" and not torch.compiler.is_compiling():
            self.solver.solve_rows(scores.detach(), k=k)

    def _shown(self, x: Tensor, soft: Tensor, k: Tensor | int | None) -> Tensor:
        """soft, or the hard solution of x [*batch, S, n] with its gradient: if ``hard``, or where
        no samples are drawn."""
        return straight_through(self._solved(x, k), soft) if self.hard or not self.noisy else soft


class GumbelSoftmax(Relaxation):
    """softmax((theta + G) / t), one of n.

    Jang, Gu, Poole, ICLR 2017; Maddison, Mnih, Teh, ICLR 2017. The arguments are those of
    ``Relaxation``.
    """

    applies_to = (Argmax,)

    def _samples(self, scores: Tensor, k: Tensor | int | None, key: Tensor | None) -> Tensor:
        self._refuse_bad_rows(scores, k)
        x = self._perturbed(scores, key)
        return self._shown(x, torch.softmax(x / self.temperature, -1), k)


class _Rounds(Relaxation):
    """Relaxations of top-k that do something k times."""

    applies_to = (TopK,)
    solver: TopK

    def _samples(self, scores: Tensor, k: Tensor | int | None, key: Tensor | None) -> Tensor:
        rounds, each = self._rounds(k)
        self._refuse_bad_rows(scores, k)
        if rounds == 0:
            x = self._perturbed(scores, key)
            return self._shown(x, x.masked_fill(torch.ones_like(x, dtype=torch.bool), 0.0), k)
        x, soft = self._soft(scores, key, rounds, each)
        if each is not None:
            bad = (each < 0) | (each > rounds)
            soft = soft.masked_fill(bad.unsqueeze(-1), torch.nan)
        return self._shown(x, soft, k)

    @abstractmethod
    def _soft(
        self, scores: Tensor, key: Tensor | None, rounds: int, each: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Scores and their soft sample, [*batch, S, n], in rounds >= 1 of which each row,
        [*batch, 1], makes use."""

    def _rounds(self, k: Tensor | int | None) -> tuple[int, Tensor | None]:
        """How many rounds, and of how many of them each row makes use: [*batch, 1]."""
        owner = type(self).__name__
        if not isinstance(k, Tensor):
            rounds = self.solver.k if k is None else k
            return check_int(owner, "k", rounds, 0), None
        if k.device.type == "cpu" and not torch.compiler.is_compiling():
            bad = k[(k < 0) | (k > self.solver.k)]
            if bad.numel():
                raise ValueError(
                    f"[aimle.{owner}] expected 0 <= k <= {self.solver.k}, the solver's k, in every "
                    f"row but got {bad[0]}"
                )
        return self.solver.k, k.unsqueeze(-1)


class SoftSub(_Rounds):
    """k rounds of softmax over theta + G, each round added up: entries in (0, 1) that sum to k.

    Round i takes a_i = softmax(w_i / t) and leaves w_{i+1} = w_i + log(1 - a_i), so that what was
    taken in any earlier round stays down. Xie & Ermon, IJCAI 2019. The arguments are those of
    ``Relaxation``.
    """

    def _soft(
        self, scores: Tensor, key: Tensor | None, rounds: int, each: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        x = self._perturbed(scores, key)
        w, soft = x, torch.zeros_like(x)
        tiny = torch.finfo(x.dtype).tiny
        for i in range(rounds):
            taken = torch.softmax(w / self.temperature, -1)
            soft = soft + (taken if each is None else taken * (each > i).unsqueeze(-1))
            w = w + torch.log((1 - taken).clamp_min(tiny))
        return x, soft


class L2X(_Rounds):
    """The entry-wise maximum of k concrete draws: soft only, sums to at most k.

    Chen, Song, Wainwright, Jordan, ICML 2018. The arguments are those of ``Relaxation``, but hard.
    """

    def __init__(
        self,
        solver: Solver,
        *,
        temperature: float = 1.0,
        nb_samples: int = 1,
        output: Output = "samples",
        noise_in_eval: bool = False,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(
            solver,
            temperature=temperature,
            nb_samples=nb_samples,
            output=output,
            noise_in_eval=noise_in_eval,
            generator=generator,
        )

    def _soft(
        self, scores: Tensor, key: Tensor | None, rounds: int, each: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        rows = scores.unsqueeze(-2)
        x = rows.unsqueeze(-2) + self._gumbel(scores, key, draws=rounds)
        draws = torch.softmax(x / self.temperature, -1)
        if each is not None:
            used = each.unsqueeze(-1) > torch.arange(rounds, device=each.device)
            draws = torch.where(used.unsqueeze(-1), draws, 0.0)
        return rows, draws.amax(-2)
