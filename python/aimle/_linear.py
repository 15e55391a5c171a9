"""Losses that are linear in z: a regret, the number of wrong entries, recorded gradients.

The gradient d of such a loss is the same for all solutions, so IMLE with a step that makes the
scores negligible compares z with MAP(-d), the best solution for the loss. On problems with such a
loss this trained as well as the best step (docs/results/advice.md), and its length does not matter.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from aimle._settings import instance_dims_of
from aimle._truth import Loss

_SAMPLES = 8
_TIMES = 1000.0  # the scores; a step ten times shorter or longer trained equally well


def long_step(solver: Any, theta: Tensor, loss: Loss) -> float | None:
    """The length of the step, in units of theta; None if the loss is not linear in z.

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
    if not size > 0 or float((gradient - first).abs().max()) > 1e-4 * size:
        return None
    return _TIMES * scale / size
