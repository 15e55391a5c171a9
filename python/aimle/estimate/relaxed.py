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
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from aimle.estimate.sampled import SampledEstimator, hide, per_sample, straight_through
from aimle.noise import Gumbel
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
        temperature: t > 0, kept in a buffer; ``set_temperature`` changes it without recompiling.
        hard: show the discrete sample, keep the gradient of the soft one.
    The other arguments are those of ``SampledEstimator``.
    """

    temperature: Tensor

    def __init__(
        self, solver: Solver, *, temperature: float = 1.0, hard: bool = False, **settings
    ) -> None:
        super().__init__(solver, **settings)
        self.hard = hard
        self.register_buffer("temperature", torch.tensor(0.0))
        self.set_temperature(temperature)

    def set_temperature(self, temperature: float) -> None:
        """Changes the temperature, from now on."""
        if not (math.isfinite(temperature) and temperature > 0):
            raise ValueError(
                f"[aimle.{type(self).__name__}] expected a finite temperature > 0 but got "
                f"{temperature}"
            )
        self.temperature.fill_(temperature)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, temperature={self.temperature.item():g}, hard={self.hard}"


class GumbelSoftmax(Relaxation):
    """softmax((theta + G) / t), one of n."""

    applies_to = (Argmax,)

    def forward(
        self, theta: Tensor, *, mask: Tensor | None = None, key: Tensor | None = None
    ) -> Tensor:
        """theta [*batch, n], mask broadcastable to it, key int64 [2]."""
        x = self._perturbed(theta, mask, key)
        soft = torch.softmax(x / self.temperature, -1)
        if not self.hard and self.noisy:
            return self._shaped(soft)
        return self._shaped(straight_through(self.solver(x.detach()), soft))


class SoftSub(Relaxation):
    """k rounds of softmax over theta + G, each round added up: entries in (0, 1) that sum to k.

    Round i takes a_i = softmax(w_i / t) and leaves w_{i+1} = w_i + log(1 - a_i), so that what was
    taken in any earlier round stays down.
    """

    applies_to = (TopK,)

    def forward(
        self,
        theta: Tensor,
        *,
        mask: Tensor | None = None,
        k: Tensor | int | None = None,
        key: Tensor | None = None,
    ) -> Tensor:
        """theta [*batch, n], mask broadcastable to it, k int or int64 [*batch], key int64 [2]."""
        x = self._perturbed(theta, mask, key)
        each = per_sample(self.solver.k if k is None else k)
        rounds = int(each.max()) if isinstance(each, Tensor) else each
        w, soft = x, torch.zeros_like(x)
        tiny = torch.finfo(x.dtype).tiny
        for i in range(rounds):
            taken = torch.softmax(w / self.temperature, -1)
            more = (each > i).unsqueeze(-1) if isinstance(each, Tensor) else True
            soft = soft + taken * more
            w = w + torch.log((1 - taken).clamp_min(tiny))
        if not self.hard and self.noisy:
            return self._shaped(soft)
        return self._shaped(straight_through(self.solver(x.detach(), k=per_sample(k)), soft))


class L2X(Relaxation):
    """The entry-wise maximum of k concrete draws: soft only, sums to at most k."""

    applies_to = (TopK,)

    def __init__(self, solver: Solver, *, temperature: float = 1.0, **settings) -> None:
        super().__init__(solver, temperature=temperature, hard=False, **settings)

    def forward(
        self, theta: Tensor, *, mask: Tensor | None = None, key: Tensor | None = None
    ) -> Tensor:
        """theta [*batch, n], mask broadcastable to it, key int64 [2]."""
        self._check(theta)
        shown = hide(theta, mask)
        eps = self._noise(Gumbel(), theta, key, draws=self.solver.k)
        draws = torch.softmax((shown[..., None, None, :] + eps) / self.temperature, -1)
        soft = draws.amax(-2)
        if self.noisy:
            return self._shaped(soft)
        return self._shaped(straight_through(self.solver(shown.detach().unsqueeze(-2)), soft))
