"""The SPO+ loss.

Elmachtoub, Grigas, "Smart 'Predict, then Optimize'", Management Science 2022. A model predicts
theta, the true coefficients are c, and the solution of theta is judged by its regret under c. With
s = 1 for sense "max" and -1 for "min", x = 2 theta - c, z = solve(x) and z* = solve(c):

    loss = s <x, z - z*>,    gradient 2 s (z - z*)

aimle/torch/estimate/spo_plus.cpp has the derivation, and the formula, which native solvers and
callables share.
"""

from __future__ import annotations

import torch
from torch import Tensor

from aimle.estimate.perturbed import _About, _solve
from aimle.settings.checks import (
    check_batch,
    check_mask,
    check_tensor,
    check_theta,
    instance_dims_of,
)
from aimle.settings.names import loss_names
from aimle.settings.shared import AnySolver, Sense
from aimle.solvers import Solver, check_solver, checked_dims, resolve_sense

_ops = torch.ops.aimle
_OWNER = "spo_plus_loss"


@loss_names
def spo_plus_loss(
    theta: Tensor,
    true_theta: Tensor,
    solver: AnySolver,
    *,
    solution: Tensor | None = None,
    sense: Sense | None = None,
    mask: Tensor | None = None,
    k: Tensor | int | None = None,
    data: Tensor | None = None,
    instance_dims: int | None = None,
    fractional: bool | None = None,
) -> Tensor:
    """The SPO+ loss of predicted scores or costs, one value per example: [*batch].

    theta are the predictions and true_theta, of the same shape, what they should be; only theta
    gets a gradient. The loss is convex in theta, zero for theta = true_theta, and never below the
    regret, which is the value under true_theta that the solution of theta loses compared with the
    best one.

    solution: the best structures for true_theta, if they are known. Otherwise they are found by the
    solver, in the same call as those for 2 theta - true_theta.

    GridPath and GraphPath need costs that are not below zero, but 2 theta - true_theta can be. The
    loss is then that of all supersets of paths: the path for the costs clipped at zero, and every
    entry whose cost is below zero. It has the same properties, because a superset of a path is
    never cheaper if true costs are not below zero; those below zero count as zero. A callable is
    given 2 theta - true_theta as it is, unless it has the attribute ``has_costs = True``.

    Entries that are masked or infinite, in theta or in true_theta, add nothing to the loss.

    sense, mask, k, data, instance_dims and fractional are as for ``perturbed_fenchel_young_loss``.
    """
    check_theta(_OWNER, theta)
    check_solver(_OWNER, solver)
    _check_like_theta("true_theta", true_theta, theta)
    if solution is not None:
        _check_like_theta("solution", solution, theta)
    if mask is not None:
        check_mask(_OWNER, mask, theta)
    sense = resolve_sense(_OWNER, solver, sense)
    given_dims = checked_dims(_OWNER, solver, instance_dims, fractional)
    dims = instance_dims_of(solver, theta, given_dims)
    check_batch(_OWNER, theta, dims)
    if isinstance(solver, Solver):
        text, row_data = solver.row_arguments(_OWNER, theta, k, data)
        return _ops.spo_plus_loss.default(theta, true_theta, solution, mask, row_data, text, sense)
    costs = bool(getattr(solver, "has_costs", False)) and sense == "min"
    scores = _ops.spo_plus_scores.default(theta, true_theta, costs)
    x = scores.detach().clamp(min=0) if costs else scores.detach()
    about = _About(_OWNER, fractional)
    if solution is None:
        rows = torch.stack([x, true_theta.detach().to(x.dtype)])
        z, solution = _solve(solver, sense, rows, mask, k, data, dims, about).unbind(0)
    else:
        z = _solve(solver, sense, x, mask, k, data, dims, about)
    return _ops.spo_plus.default(scores, z, solution, mask, sense == "max", dims, costs)


def _check_like_theta(name: str, value: Tensor, theta: Tensor) -> None:
    """Raises TypeError or ValueError unless value is real, and has theta's shape and device."""
    check_tensor(_OWNER, name, value)
    if value.is_complex():
        raise TypeError(
            f"[aimle.{_OWNER}] expected {name} of a real type but got {value.dtype}: pass "
            f"{name}.real"
        )
    if value.shape != theta.shape:
        raise ValueError(
            f"[aimle.{_OWNER}] expected {name} of the shape of theta, {list(theta.shape)}, but got "
            f"{list(value.shape)}"
        )
    if value.device != theta.device:
        raise ValueError(
            f"[aimle.{_OWNER}] expected {name} on the device of theta, {theta.device}, but got "
            f"{value.device}: pass {name}.to(theta.device)"
        )
