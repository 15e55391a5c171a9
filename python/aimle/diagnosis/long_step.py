"""When IMLE with a long step is recommended, and the length of that step.

1. Losses that are linear in z: a regret, the number of wrong entries, recorded gradients. The
   gradient d of such a loss is the same for all solutions, so a step that makes the scores
   negligible compares z with MAP(-d), the best solution for the loss.
2. Saturated layers: the noise changes less than a tenth of the chosen entries, because the scores
   have become large. Short steps then change nothing either, and training stops. One of n is an
   exception: a long step trained its experts badly.

docs/results/advice.md has the results. Steps ten times shorter or longer trained equally well.
"""

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

import aimle
from aimle.diagnosis.truth import Loss, Model
from aimle.estimate.perturbed import Instances, signed
from aimle.settings.checks import instance_dims_of
from aimle.structures import Argmax

_SAMPLES = 8
_TIMES = 1000.0  # the scores
_SATURATED = 0.1  # chosen with the tasks that docs/results/advice.md calls used


class LongStep(NamedTuple):
    """length: in units of theta; saturated: the reason, otherwise the loss is linear in z."""

    length: float
    saturated: bool


def long_step(solver: Any, model: Model, theta: Tensor, loss: Loss) -> LongStep | None:
    """The step, or None if neither reason applies.

    The loss is called with solutions of theta under Normal noise as large as theta.
    """
    scale = float(theta.square().mean().sqrt()) or 1.0
    place = theta.dim() - instance_dims_of(solver, theta)
    noise = scale * torch.randn(_SAMPLES, *theta.shape).to(theta)
    with torch.no_grad():
        z = torch.stack([torch.as_tensor(solver(theta + each)).to(theta) for each in noise], place)
    z.requires_grad_()
    losses = loss(z)
    if not losses.requires_grad:
        return None
    (gradient,) = torch.autograd.grad(losses.sum(), z, allow_unused=True)
    if gradient is None or bool((z.detach() == z.detach().select(place, 0).unsqueeze(place)).all()):
        return None
    first = gradient.select(place, 0).unsqueeze(place)
    size = float(gradient.square().mean().sqrt())
    if not size > 0:
        return None
    is_linear = float((gradient - first).abs().max()) <= 1e-4 * size
    if is_linear or (not isinstance(solver, Argmax) and _is_saturated(solver, model, theta)):
        return LongStep(_TIMES * scale / size, saturated=not is_linear)
    return None


def _is_saturated(solver: Any, model: Model, theta: Tensor) -> bool:
    """Whether the noise changes few of the entries that are chosen without it."""
    sense: Literal["max", "min"] = getattr(solver, "sense", "max")
    noise, tau = model.with_density()
    with torch.no_grad():
        dims = instance_dims_of(solver, theta)
        instances = Instances(solver, sense, dims, owner="diagnose")
        key = aimle.draw_key(theta)
        _, z = instances.perturbed(noise, signed(tau, sense), _SAMPLES, theta, key)
        chosen = instances.solve(theta).to(z)
    changed = (z - chosen).abs().sum()
    return bool(changed < _SATURATED * (z.abs().sum() + _SAMPLES * chosen.abs().sum()))
