"""Measures one layer of a diagnosis: warms it up, estimates gradients and compares them.

With g the estimates and t the true gradient, of one example or, except for the cosine, of the
batch:

    cosine        mean of cos(g, t): accuracy of the direction of one estimate
    norm_ratio    |mean g| / |t|
    bias          |E g - t| / |t|, less the noise that remains after averaging
    variance      E |g - E g|^2 / |t|^2
    zeros         share of components below 1e-8
    microseconds  of one forward and backward pass, the fastest of the repeats
"""

import math
import time
from typing import Any

import torch
from torch import Tensor, nn

from aimle.diagnosis.truth import Loss, estimate_gradient


def warm_up(
    name: str,
    layer: nn.Module,
    theta: Tensor,
    loss: Loss,
    steps: int,
    settled: dict[str, dict[str, Tensor]],
) -> None:
    """Lets an adaptive layer settle, starting from its state with another number of samples."""
    if getattr(layer, "alpha", None) is None:
        return
    if name in settled:
        layer.load_state_dict(settled[name])
        steps //= 4
    for _ in range(steps):
        estimate_gradient(layer, theta, loss)
    settled[name] = {key: value.clone() for key, value in layer.state_dict().items()}


def compare(
    layer: nn.Module,
    theta: Tensor,
    loss: Loss,
    truth: Tensor,
    repeats: int,
    dims: int,
    truth_error: float = 0.0,
) -> dict[str, Any]:
    """A row of a diagnosis: `repeats` estimates of the layer, compared with the true gradient."""
    alpha = getattr(layer, "alpha", None)
    alpha = float(alpha) if alpha is not None else None
    stats = getattr(layer, "stats", None)
    estimates: list[Tensor] = []
    steps: list[float] = []
    clipped: list[float] = []
    fastest = math.inf
    for _ in range(repeats):
        start = time.perf_counter()
        estimates.append(estimate_gradient(layer, theta, loss)[0].double())
        fastest = min(fastest, time.perf_counter() - start)
        seen = {} if stats is None else stats()
        for name, values in (("lambda_mean", steps), ("clipped_share", clipped)):
            if name in seen and bool(torch.isfinite(seen[name])):
                values.append(float(seen[name]))
    all_ = torch.stack(estimates)
    mean, scale = all_.mean(0), truth.norm()
    target = truth.flatten(truth.dim() - dims).reshape(-1, truth.shape[-dims:].numel())
    cosine = torch.cosine_similarity(
        all_.reshape(repeats, *target.shape), target.expand(repeats, -1, -1), dim=-1, eps=1e-30
    )
    known = target.norm(dim=-1) > 0
    each = (cosine * known).sum(1) / known.sum()
    variance = float((all_ - mean).square().sum() / (repeats - 1) / scale**2)
    squared = float((mean - truth).square().sum() / scale**2)
    return {
        "cosine": float(each.mean()),
        "cosine_se": float(each.std() / math.sqrt(repeats)),
        "norm_ratio": float(mean.norm() / scale),
        "bias": math.sqrt(max(0.0, squared - variance / repeats - truth_error**2)),
        "variance": variance,
        "zeros": float((all_.abs() < 1e-8).double().mean()),
        "alpha": alpha,
        "microseconds": 1e6 * fastest,
        "clipped": sum(clipped) / len(clipped) if clipped else None,
        "step": sum(steps) / len(steps) if steps else None,
    }
