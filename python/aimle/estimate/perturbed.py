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
    check_bool,
    check_choice,
    check_generator_type,
    check_int,
    check_mask,
    check_positive,
    check_tensor,
    check_theta,
    instance_dims_of,
)
from aimle.settings.names import loss_names
from aimle.settings.shared import AnySolver, Sense, SolverModule
from aimle.solvers import Data, K, Key, Mask, Solver, check_solver, checked_dims, resolve_sense

_ops = torch.ops.aimle


class DPO(SolverModule):
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
        self.noise_in_eval = check_bool("DPO", "noise_in_eval", noise_in_eval)
        check_generator_type("DPO", generator)
        self.generator = generator

    def _checked(self) -> tuple[int, float]:
        """nb_samples and temperature, which can be assigned."""
        reduced = self.variance_reduction == "leave_one_out"
        nb_samples = check_int("DPO", "nb_samples", self.nb_samples, 2 if reduced else 1)
        check_positive("DPO", "temperature", self.temperature)
        return nb_samples, float(self.temperature)

    def forward(
        self, theta: Tensor, *, mask: Mask = None, k: K = None, data: Data = None, key: Key = None
    ) -> Tensor:
        """theta [*batch, *instance], mask, k, data and key as for the layers."""
        check_theta("DPO", theta)
        if mask is not None:
            check_mask("DPO", mask, theta)
        dims = instance_dims_of(self.solver, theta, self.instance_dims)
        check_batch("DPO", theta, dims)
        if in_onnx_export():
            return onnx_solution(self, theta, mask, k)
        given = Instances(self.solver, self.sense, dims, mask, k, data, "DPO", self.fractional)
        if not (self.training or self.noise_in_eval):
            return given.solve(theta.detach())
        if key is None:
            check_generator("DPO", self.generator)
            key = draw_key(theta, generator=self.generator)
        check_tensor("DPO", "key", key)
        key = key.to(theta.device)
        nb_samples, temperature = self._checked()
        tau = signed(temperature, self.sense)
        folded, given = given.undirected(theta)
        eps, z = given.perturbed(self.noise, tau, nb_samples, folded, key)
        reduced = self.variance_reduction == "leave_one_out"
        mean = _ops.dpo.default(folded, eps, z, given.mask, self.noise.name, tau, dims, reduced)
        mean = mean.to(theta.dtype)
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
    mask: Mask = None,
    k: K = None,
    data: Data = None,
    key: Key = None,
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
    owner = "perturbed_fenchel_young_loss"
    nb_samples = check_int(owner, "nb_samples", nb_samples, 1)
    check_positive(owner, "temperature", temperature)
    given = instances_of(
        owner, theta, solver, sense, mask, k, data, instance_dims, fractional, target=target
    )
    if target.dtype is torch.bool:
        target = target.to(theta.dtype)
    if key is None:
        key = draw_key(theta)
    check_tensor(owner, "key", key)
    key = key.to(theta.device)
    tau = signed(temperature, given.sense)
    folded, given = given.undirected(theta)
    eps, z = given.perturbed(as_noise(noise), tau, nb_samples, folded, key)
    if isinstance(solver, Solver) and folded.shape != theta.shape:
        # The target has the same value in both directions.
        target = _ops.undirected.default(target.to(theta.dtype), solver.text) / 2
    clips = getattr(solver, "negative", None) == "clip"
    loss = _ops.fenchel_young.default(folded, target, eps, z, given.mask, tau, given.dims, clips)
    return loss.to(torch.promote_types(theta.dtype, target.dtype))


def signed(temperature: float, sense: Sense) -> float:
    """tau, the factor of the noise added to theta: negative for costs."""
    return -float(temperature) if sense == "min" else float(temperature)


def _wide(x: Tensor) -> torch.dtype:
    """The type in which x is solved."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


class Instances(NamedTuple):
    """How instances of scores or costs are solved, and what belongs to them besides theta."""

    solver: Any
    sense: Sense  # "min": theta holds costs
    dims: int  # of an instance
    mask: Tensor | None = None
    k: Tensor | int | None = None
    data: Tensor | None = None
    owner: str = "solve"  # for messages
    fractional: bool | None = None

    def solve(self, x: Tensor) -> Tensor:
        """Solutions of x [..., *instance]."""
        own = getattr(self.solver, "sense", self.sense)
        scores = x if own == self.sense else -x
        if isinstance(self.solver, Solver):
            return self.solver.solve_rows(scores, self.mask, self.k, data=self.data)[0]
        if self.mask is not None:
            scores = scores.masked_fill(~self.mask, torch.inf if own == "min" else -torch.inf)
        rows = scores.reshape(-1, *x.shape[x.dim() - self.dims :])
        rows = rows.to(_wide(x), copy=scores is x)  # the callable may change them
        fractional = may_be_fractional(self.solver, self.fractional)
        z = as_answer(self.owner, self.solver(rows), rows, fractional=fractional)
        return z.reshape(x.shape).to(x.dtype)

    def perturbed(
        self, noise: Noise | None, tau: float, nb_samples: int, theta: Tensor, key: Tensor
    ) -> tuple[Tensor, Tensor]:
        """eps and the solutions of theta + tau eps: both [S, *batch, *instance], float32 for
        bfloat16 and float16, whose few bits would round the noise."""
        shape, dims = theta.shape, self.dims
        eps = sample_noise(noise, shape, key, instance_dims=dims, nb_samples=nb_samples)
        eps = eps.movedim(theta.dim() - dims, 0).to(_wide(theta))
        return eps, self.solve(theta.detach() + tau * eps)

    def undirected(self, theta: Tensor) -> tuple[Tensor, Instances]:
        """theta and these in the layout of the noise: trees have one entry for both directions."""
        if not isinstance(self.solver, Solver):
            return theta, self
        text = self.solver.text
        mask = None if self.mask is None else _ops.undirected.default(self.mask, text)
        return _ops.undirected.default(theta, text), self._replace(mask=mask)


def instances_of(
    owner: str,
    theta: Tensor,
    solver: AnySolver,
    sense: Sense | None,
    mask: Mask,
    k: K,
    data: Data,
    instance_dims: int | None,
    fractional: bool | None,
    **like_theta: Tensor,
) -> Instances:
    """The instances of theta; raises TypeError or ValueError for bad arguments of a loss.

    like_theta: arguments of the shape of theta.
    """
    check_theta(owner, theta)
    check_solver(owner, solver)
    for name, value in like_theta.items():
        _check_like_theta(owner, name, value, theta)
    if mask is not None:
        check_mask(owner, mask, theta)
    sense = resolve_sense(owner, solver, sense)
    given_dims = checked_dims(owner, solver, instance_dims, fractional)
    dims = instance_dims_of(solver, theta, given_dims)
    check_batch(owner, theta, dims)
    return Instances(solver, sense, dims, mask, k, data, owner, fractional)


def _check_like_theta(owner: str, name: str, value: Tensor, theta: Tensor) -> None:
    """Raises TypeError or ValueError unless value is real, and has theta's shape and device."""
    check_tensor(owner, name, value)
    if value.is_complex():
        raise TypeError(
            f"[aimle.{owner}] expected {name} of a real type but got {value.dtype}: pass "
            f"{name}.real"
        )
    if value.shape != theta.shape:
        raise ValueError(
            f"[aimle.{owner}] expected {name} of the shape of theta, {list(theta.shape)}, but got "
            f"{list(value.shape)}"
        )
    if value.device != theta.device:
        raise ValueError(
            f"[aimle.{owner}] expected {name} on the device of theta, {theta.device}, but got "
            f"{value.device}: pass {name}.to(theta.device)"
        )


def _with_density(owner: str, noise: Noise | str | None) -> Noise:
    noise = as_noise(noise)
    if not isinstance(noise, Normal | Gumbel | Logistic):
        raise ValueError(
            f"[aimle.{owner}] expected a noise with a density in closed form, Normal, Gumbel or "
            f"Logistic, but got {noise}"
        )
    return noise
