"""The SPO+ loss.

Elmachtoub, Grigas, "Smart 'Predict, then Optimize'", Management Science 2022. A model predicts
theta, the true coefficients are c, and the solution of theta is judged by its regret under c. With
s = 1 for sense "max" and -1 for "min", x = 2 theta - c, z = solve(x) and z* = solve(c):

    loss = s <x, z - z*>,    gradient 2 s (z - z*)

aimle/torch/estimate/spo_plus.cpp has the derivation, and the formula, which native solvers and
callables share.
"""

import torch
from torch import Tensor

from aimle.estimate.perturbed import instances_of
from aimle.settings.names import loss_names
from aimle.settings.shared import AnySolver, Sense
from aimle.solvers import Data, K, Mask, Solver

_ops = torch.ops.aimle


@loss_names
def spo_plus_loss(
    theta: Tensor,
    true_theta: Tensor,
    solver: AnySolver,
    *,
    solution: Tensor | None = None,
    sense: Sense | None = None,
    mask: Mask = None,
    k: K = None,
    data: Data = None,
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
    owner = "spo_plus_loss"
    like = {"true_theta": true_theta, **({} if solution is None else {"solution": solution})}
    given = instances_of(
        owner, theta, solver, sense, mask, k, data, instance_dims, fractional, **like
    )
    if isinstance(solver, Solver):
        text, row_data = solver.row_arguments(owner, theta, k, data)
        return _ops.spo_plus_loss.default(
            theta, true_theta, solution, mask, row_data, text, given.sense
        )
    costs = bool(getattr(solver, "has_costs", False)) and given.sense == "min"
    scores = _ops.spo_plus_scores.default(theta, true_theta, costs)
    x = scores.detach().clamp(min=0) if costs else scores.detach()
    if solution is None:
        z, solution = given.solve(torch.stack([x, true_theta.detach().to(x.dtype)])).unbind(0)
    else:
        z = given.solve(x)
    return _ops.spo_plus.default(scores, z, solution, mask, given.sense == "max", given.dims, costs)
