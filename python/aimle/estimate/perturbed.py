"""Perturbed optimisers, and their loss.

Berthet, Blondel, Teboul, Cuturi, Vert, Bach, "Learning with Differentiable Perturbed Optimizers",
NeurIPS 2020. Noise of density exp(-nu(eps)) makes the mean solution smooth in theta:

    y(theta) = E MAP(theta + tau eps),    dy/dtheta = E[ z nu'(eps)' ] / tau

    dpo   the mean of S solutions, with an estimate of this Jacobian. Normal: nu' = eps; Gumbel:
          1 - e^-eps; Logistic: tanh(eps / 2).

    perturbed_fenchel_young_loss   F(theta) - <theta, y>, F(theta) = E max_z <theta + tau eps, z>:
          convex in theta. Its gradient is the mean solution minus the target y, so no Jacobian is
          needed. If target structures are known, this trains better than any loss on z.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch import Generator, Tensor

from aimle.callable_solver.answers import as_answer, may_be_fractional
from aimle.functional import check_generator, draw_key, sample_noise
from aimle.noise import Gumbel, Logistic, Noise, Normal, as_noise
from aimle.onnx.solution import in_onnx_export, onnx_solution
from aimle.settings.checks import (
    check_batch,
    check_choice,
    check_int,
    check_mask,
    check_positive,
    check_tensor,
    check_theta,
    instance_dims_of,
)
from aimle.settings.names import SettingsModule, loss_names
from aimle.settings.shared import AnySolver, Sense
from aimle.solvers import Solver, check_solver, checked_dims, resolve_sense

_ops = torch.ops.aimle


class DPO(SettingsModule):
    """The mean of perturbed solutions, [*batch, *instance] -> the same shape.

    Berthet, Blondel, Teboul, Cuturi, Vert, Bach, "Learning with Differentiable Perturbed
    Optimizers", NeurIPS 2020. Forward: (1/S) sum_s z_s. Backward, for noise of density
    exp(-nu(eps)):

        g = (1/S) sum_s <d, z_s - b_s> nu'(eps_s) / tau

    b_s is 0 or the mean of the other samples. Both are unbiased for the Jacobian of the mean; the
    latter has a lower variance. No second solve.

    Args:
        solver: a native solver, or a callable from scores [N, *instance] to solutions.
        noise: Normal, Gumbel or Logistic.
        nb_samples: S, the number of samples per example.
        temperature: tau > 0, the scale of the noise.
        variance_reduction: "leave_one_out" (S >= 2) or "none".
        sense: "max" or "min"; None means the solver's own.
        noise_in_eval: keep the noise in eval mode, which otherwise gives the noise-free solution.
        generator: draws the keys instead of PyTorch's default generator.
        output: must be "mean".
        instance_dims, fractional: for a callable, as for ``AIMLE``.
    """

    def __init__(
        self,
        solver: AnySolver,
        *,
        noise: Noise | str = Normal(),  # noqa: B008  (frozen)
        nb_samples: int = 10,
        temperature: float = 1.0,
        variance_reduction: Literal["leave_one_out", "none"] = "leave_one_out",
        sense: Sense | None = None,
        noise_in_eval: bool = False,
        generator: Generator | None = None,
        output: Literal["mean"] = "mean",
        instance_dims: int | None = None,
        fractional: bool | None = None,
    ) -> None:
        super().__init__()
        check_solver("DPO", solver)
        check_choice("DPO", "output", output, ("mean",))
        self.sense = resolve_sense("DPO", solver, sense)
        check_choice("DPO", "variance_reduction", variance_reduction, ("leave_one_out", "none"))
        self.solver = solver
        self.instance_dims = checked_dims("DPO", solver, instance_dims, fractional)
        self.fractional = fractional
        self.noise = _with_density("DPO", noise)
        self.variance_reduction = variance_reduction
        self.nb_samples, self.temperature = nb_samples, temperature
        self.nb_samples, self.temperature = self._checked()
        self.noise_in_eval = noise_in_eval
        self.generator = generator

    def _checked(self) -> tuple[int, float]:
        """nb_samples and temperature, which can be assigned."""
        reduced = self.variance_reduction == "leave_one_out"
        nb_samples = check_int("DPO", "nb_samples", self.nb_samples, 2 if reduced else 1)
        check_positive("DPO", "temperature", self.temperature)
        return nb_samples, float(self.temperature)

    def forward(
        self,
        theta: Tensor,
        *,
        mask: Tensor | None = None,
        k: Tensor | int | None = None,
        data: Tensor | None = None,
        key: Tensor | None = None,
    ) -> Tensor:
        """theta [*batch, *instance], mask, k, data and key as for the layers."""
        check_theta("DPO", theta)
        if mask is not None:
            check_mask("DPO", mask, theta)
        dims = instance_dims_of(self.solver, theta, self.instance_dims)
        check_batch("DPO", theta, dims)
        if in_onnx_export():
            return onnx_solution(self, theta, mask, k)
        about = _About("DPO", self.fractional)
        if not (self.training or self.noise_in_eval):
            return _solve(self.solver, self.sense, theta.detach(), mask, k, data, dims, about)
        if key is None:
            check_generator("DPO", self.generator)
            key = draw_key(theta, generator=self.generator)
        check_tensor("DPO", "key", key)
        key = key.to(theta.device)
        nb_samples, temperature = self._checked()
        tau = signed(temperature, self.sense)
        folded, mask = _undirected(self.solver, theta, mask)
        eps, z = perturbed_solutions(
            self.solver,
            self.sense,
            self.noise,
            tau,
            nb_samples,
            folded,
            mask,
            k,
            data,
            key,
            dims,
            about,
        )
        reduced = self.variance_reduction == "leave_one_out"
        mean = _ops.dpo.default(folded, eps, z, mask, self.noise.name, tau, dims, reduced)
        if not isinstance(self.solver, Solver):
            return mean
        return _ops.directed.default(mean, theta, self.solver.text)

    def extra_repr(self) -> str:
        return (
            f"{self.solver}, noise={self.noise}, nb_samples={self.nb_samples}, "
            f"temperature={self.temperature:g}, variance_reduction={self.variance_reduction!r}, "
            f"sense={self.sense!r}"
        )


@loss_names
def perturbed_fenchel_young_loss(
    theta: Tensor,
    target: Tensor,
    solver: AnySolver,
    *,
    noise: Noise | str = Normal(),  # noqa: B008  (frozen)
    nb_samples: int = 1,
    temperature: float = 1.0,
    sense: Sense | None = None,
    mask: Tensor | None = None,
    k: Tensor | int | None = None,
    data: Tensor | None = None,
    key: Tensor | None = None,
    instance_dims: int | None = None,
    fractional: bool | None = None,
) -> Tensor:
    """E max_z <theta + tau eps, z> - <theta, target>, one value per example: [*batch].

    target: a structure, or a mean of structures, of the shape of theta. The gradient of theta is
    the mean of nb_samples perturbed solutions minus target (for sense "min": its negative); it is
    zero on average if the model's mean solution equals the target. The value is the loss up to a
    constant that depends only on the target.

    GridPath and GraphPath clip perturbed costs below zero to zero. The value does the same, for the
    solution and the target, and a draw in which a cost is clipped adds nothing to its gradient.
    Keep costs above zero, for example with softplus.

    instance_dims and fractional describe a callable, as for ``AIMLE``.
    """
    nb_samples = check_int("perturbed_fenchel_young_loss", "nb_samples", nb_samples, 1)
    check_positive("perturbed_fenchel_young_loss", "temperature", temperature)
    check_theta("perturbed_fenchel_young_loss", theta)
    check_solver("perturbed_fenchel_young_loss", solver)
    check_tensor("perturbed_fenchel_young_loss", "target", target)
    if target.shape != theta.shape:
        raise ValueError(
            "[aimle.perturbed_fenchel_young_loss] expected target of the shape of theta, "
            f"{list(theta.shape)}, but got {list(target.shape)}"
        )
    if target.dtype is torch.bool:
        target = target.to(theta.dtype)
    if mask is not None:
        check_mask("perturbed_fenchel_young_loss", mask, theta)
    noise = as_noise(noise)
    sense = resolve_sense("perturbed_fenchel_young_loss", solver, sense)
    owner = "perturbed_fenchel_young_loss"
    given_dims = checked_dims(owner, solver, instance_dims, fractional)
    dims = instance_dims_of(solver, theta, given_dims)
    check_batch(owner, theta, dims)
    about = _About(owner, fractional)
    key = draw_key(theta) if key is None else key.to(theta.device)
    tau = signed(temperature, sense)
    folded, mask = _undirected(solver, theta, mask)
    eps, z = perturbed_solutions(
        solver, sense, noise, tau, nb_samples, folded, mask, k, data, key, dims, about
    )
    if isinstance(solver, Solver) and folded.shape != theta.shape:
        # The target has the same value in both directions.
        target = _ops.undirected.default(target.to(theta.dtype), solver.text) / 2
    clips = getattr(solver, "negative", None) == "clip"
    return _ops.fenchel_young.default(folded, target, eps, z, mask, tau, dims, clips)


def signed(temperature: float, sense: Sense) -> float:
    """tau, the factor of the noise added to theta: negative for costs."""
    return -float(temperature) if sense == "min" else float(temperature)


def perturbed_solutions(
    solver,
    sense: Sense,
    noise,
    tau: float,
    nb_samples: int,
    theta: Tensor,
    mask,
    k,
    data,
    key,
    dims: int,
    about: _About | None = None,
) -> tuple[Tensor, Tensor]:
    """eps and the solutions of theta + tau eps: both [S, *batch, *instance]."""
    eps = sample_noise(noise, theta.shape, key, instance_dims=dims, nb_samples=nb_samples)
    eps = eps.movedim(theta.dim() - dims, 0).to(theta.dtype)
    return eps, _solve(solver, sense, theta.detach() + tau * eps, mask, k, data, dims, about)


def _undirected(solver: AnySolver, theta: Tensor, mask: Tensor | None) -> list[Any]:
    """theta and mask in the layout of the noise: trees have one entry for both directions."""
    if not isinstance(solver, Solver):
        return [theta, mask]
    return [None if x is None else _ops.undirected.default(x, solver.text) for x in (theta, mask)]


class _About(NamedTuple):
    """The owner for messages about a callable, and whether its solutions may be fractional."""

    owner: str = "solve"
    fractional: bool | None = None


def _solve(
    solver, sense: Sense, x: Tensor, mask, k, data, dims: int, about: _About | None = None
) -> Tensor:
    """Solutions of x [..., *instance]; x are costs if sense is "min"."""
    own = getattr(solver, "sense", sense)
    scores = x if own == sense else -x
    if isinstance(solver, Solver):
        return solver.solve_rows(scores, mask, k, data=data)[0]
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.inf if own == "min" else -torch.inf)
    instance = x.shape[x.dim() - dims :]
    rows = scores.reshape(-1, *instance)
    owner, fractional = about or _About()
    z = as_answer(owner, solver(rows), rows, fractional=may_be_fractional(solver, fractional))
    return z.reshape(x.shape)


def _with_density(owner: str, noise: Noise | str | None) -> Noise:
    noise = as_noise(noise)
    if not isinstance(noise, Normal | Gumbel | Logistic):
        raise ValueError(
            f"[aimle.{owner}] expected a noise with a density in closed form, Normal, Gumbel or "
            f"Logistic, but got {noise}"
        )
    return noise
