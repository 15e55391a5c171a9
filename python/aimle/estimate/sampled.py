"""What the estimators written as plain PyTorch share: arguments, noise, shapes, structures."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Generator, Tensor

from aimle._names import SettingsModule
from aimle._settings import check_choice, check_int, check_mask, check_tensor, check_theta
from aimle.functional import draw_key, sample_noise
from aimle.layers import Output
from aimle.noise import Gumbel
from aimle.solvers import Solver, TopK, check_solver


class SampledEstimator(SettingsModule):
    """theta [*batch, n] -> S samples, with the shapes and modes of the layers.

    Args:
        solver: one of ``applies_to``; TypeError otherwise.
        nb_samples: S, the number of samples per example.
        output: "samples" [*batch, S, n], "flat" [B S, n] or "mean" [*batch, n].
        noise_in_eval: keep noise and S in eval mode, which otherwise gives the noise-free hard
            solution.
        generator: draws the keys instead of PyTorch's default one.
    """

    #: The native solvers of the structures to which the estimator applies.
    applies_to: ClassVar[tuple[type[Solver], ...]]

    def __init__(
        self,
        solver: Solver,
        *,
        nb_samples: int = 1,
        output: Output = "samples",
        noise_in_eval: bool = False,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        check_solver(owner, solver)
        if not isinstance(solver, self.applies_to):
            *others, last = (kind.__name__ for kind in self.applies_to)
            names = f"{', '.join(others)} and {last}" if others else last
            raise TypeError(f"[aimle.{owner}] applies to {names} but got {type(solver).__name__}")
        nb_samples = check_int(owner, "nb_samples", nb_samples, 1)
        check_choice(owner, "output", output, ("samples", "flat", "mean"))
        self.solver = solver
        self.nb_samples = nb_samples
        self.output = output
        self.noise_in_eval = noise_in_eval
        self.generator = generator

    def forward(
        self,
        theta: Tensor,
        *,
        mask: Tensor | None = None,
        k: Tensor | int | None = None,
        key: Tensor | None = None,
    ) -> Tensor:
        """Samples for theta [*batch, n], of the shape that ``output`` says.

        Args:
            mask: bool, broadcastable to theta; entries that are False are never chosen and get no
                gradient.
            k: with TopK, an int or int64 broadcastable to *batch, in place of the solver's k.
            key: int64 [2]; drawn from PyTorch's generator if not given.
        """
        owner = type(self).__name__
        check_theta(owner, theta)
        if k is not None and not isinstance(self.solver, TopK):
            raise TypeError(
                f"[aimle.{owner}] takes k with aimle.TopK only: {type(self.solver).__name__} has "
                "no number of entries to choose"
            )
        if mask is not None:
            check_mask(owner, mask, theta)
        z = self._samples(hide(theta, mask), k, key)
        if self.output == "mean":
            return z.mean(-2)
        return z.reshape(-1, z.shape[-1]) if self.output == "flat" else z

    @property
    def noisy(self) -> bool:
        """Whether a call now draws samples."""
        return self.training or self.noise_in_eval

    def extra_repr(self) -> str:
        return f"{self.solver}, nb_samples={self.nb_samples}, output={self.output!r}"

    @abstractmethod
    def _samples(self, scores: Tensor, k: Tensor | int | None, key: Tensor | None) -> Tensor:
        """z [*batch, S, n] for scores [*batch, n], theta with masked entries -inf."""

    def _key(self, theta: Tensor, key: Tensor | None) -> Tensor:
        if key is None:
            return draw_key(theta, generator=self.generator)
        check_tensor(type(self).__name__, "key", key)
        return key.to(theta.device)

    def _gumbel(self, scores: Tensor, key: Tensor | None, draws: int | None = None) -> Tensor:
        """[*batch, S, n], or [*batch, S, draws, n]: zeros, S = 1, where nothing is sampled."""
        *batch, n = scores.shape
        instance = (n,) if draws is None else (draws, n)
        if not self.noisy:
            return scores.new_zeros(*batch, 1, *instance)
        drawn = sample_noise(
            Gumbel(),
            (*batch, *instance),
            self._key(scores, key),
            instance_dims=len(instance),
            nb_samples=self.nb_samples,
        )
        return drawn.to(scores.dtype)

    def _perturbed(self, scores: Tensor, key: Tensor | None) -> Tensor:
        """scores + Gumbel noise [*batch, S, n]."""
        return scores.unsqueeze(-2) + self._gumbel(scores, key)

    def _solved(self, x: Tensor, k: Tensor | int | None) -> Tensor:
        """The hard solution of x [*batch, S, n]."""
        return self.solver.solve_rows(x.detach(), k=per_sample(k))[0]


def hide(theta: Tensor, mask: Tensor | None) -> Tensor:
    """theta with masked entries -inf."""
    return theta if mask is None else theta.masked_fill(~mask, -torch.inf)


def straight_through(hard: Tensor, soft: Tensor) -> Tensor:
    """The value of hard with the gradient of soft."""
    return hard.detach() + (soft - soft.detach())


def per_sample(k: Tensor | int | None) -> Tensor | int | None:
    """k per row of the batch as k per sample."""
    return k.unsqueeze(-1) if isinstance(k, Tensor) else k
