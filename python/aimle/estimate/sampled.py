"""What the estimators written as plain PyTorch share: arguments, noise, shapes, structures."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Generator, Tensor, nn

from aimle._settings import check_choice, check_int, check_tensor
from aimle.functional import draw_key, sample_noise
from aimle.layers import Output
from aimle.noise import Gumbel, Noise
from aimle.solvers import Solver


class SampledEstimator(nn.Module):
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
        if not isinstance(solver, self.applies_to):
            *others, last = (kind.__name__ for kind in self.applies_to)
            names = f"{', '.join(others)} and {last}" if others else last
            raise TypeError(f"[aimle.{owner}] applies to {names} but got {type(solver).__name__}")
        check_int(owner, "nb_samples", nb_samples, 1)
        check_choice(owner, "output", output, ("samples", "flat", "mean"))
        self.solver = solver
        self.nb_samples = nb_samples
        self.output = output
        self.noise_in_eval = noise_in_eval
        self.generator = generator

    @property
    def noisy(self) -> bool:
        """Whether a call now draws samples."""
        return self.training or self.noise_in_eval

    def extra_repr(self) -> str:
        return f"{self.solver}, nb_samples={self.nb_samples}, output={self.output!r}"

    def _check(self, theta: Tensor) -> None:
        check_tensor(type(self).__name__, "theta", theta)
        if not theta.is_floating_point():
            raise TypeError(
                f"[aimle.{type(self).__name__}] expected theta of a floating-point type but got "
                f"{theta.dtype}"
            )

    def _key(self, theta: Tensor, key: Tensor | None) -> Tensor:
        return draw_key(theta, generator=self.generator) if key is None else key

    def _noise(self, noise: Noise, theta: Tensor, key: Tensor | None, draws: int = 0) -> Tensor:
        """[*batch, S, n], or [*batch, S, draws, n]: zeros, S = 1, where nothing is sampled."""
        shape = (*theta.shape[:-1], *([draws] if draws else []), theta.shape[-1])
        dims = 2 if draws else 1
        if not self.noisy:
            return theta.new_zeros(*shape[:-dims], 1, *shape[-dims:])
        drawn = sample_noise(
            noise, shape, self._key(theta, key), instance_dims=dims, nb_samples=self.nb_samples
        )
        return drawn.to(theta.dtype)

    def _perturbed(self, theta: Tensor, mask: Tensor | None, key: Tensor | None) -> Tensor:
        """theta + Gumbel noise [*batch, S, n], masked entries -inf."""
        self._check(theta)
        return hide(theta, mask).unsqueeze(-2) + self._noise(Gumbel(), theta, key)

    def _shaped(self, z: Tensor) -> Tensor:
        """z [*batch, S, n] as ``output`` says."""
        if self.output == "mean":
            return z.mean(-2)
        return z.reshape(-1, z.shape[-1]) if self.output == "flat" else z


def hide(theta: Tensor, mask: Tensor | None) -> Tensor:
    """theta with masked entries -inf."""
    return theta if mask is None else theta.masked_fill(~mask, -torch.inf)


def straight_through(hard: Tensor, soft: Tensor) -> Tensor:
    """The value of hard with the gradient of soft."""
    return hard.detach() + (soft - soft.detach())


def per_sample(k: Tensor | int | None) -> Tensor | int | None:
    """k per row of the batch as k per sample."""
    return k.unsqueeze(-1) if isinstance(k, Tensor) else k
