"""Losses that are linear on zeros and ones, with additional attributes for a diagnosis.

price    the cost of each entry, like an instance of theta: E loss = <price, E z> + constant
mean     the loss with its own randomness averaged out; the loss itself if it has none
"""

import math

import torch
from torch import Tensor

from aimle.diagnosis.truth import Loss
from aimle.settings.checks import refuse_type


class SquaredDistance:
    """|z - b|^2, for b [*instance]: z^2 = z for zeros and ones."""

    def __init__(self, b: Tensor) -> None:
        self.b, self.price, self.mean = b, 1 - 2 * b, self

    def __call__(self, z: Tensor) -> Tensor:
        return (z - self.b).square().flatten(z.dim() - self.b.dim()).sum(-1)


class Linear:
    """<c, z>, for c [*instance]."""

    def __init__(self, c: Tensor) -> None:
        self.c, self.price, self.mean = c, c, self

    def __call__(self, z: Tensor) -> Tensor:
        return (z * self.c).flatten(z.dim() - self.c.dim()).sum(-1)


class RecordedGradients:
    """<c, z> with a row of c [rows, *instance] for every sample.

    A call continues with the row after the last one used, so all rows have the same weight.
    """

    def __init__(self, rows: Tensor) -> None:
        self.rows, self.mean = rows, Linear(rows.mean(0))
        self.price = self.mean.price
        self._next = 0

    def __call__(self, z: Tensor) -> Tensor:
        count = len(self.rows)
        dims = self.rows.dim() - 1
        samples = z.shape[z.dim() - dims - 1]
        order = (torch.arange(samples) + self._next) % count
        self._next = (self._next + samples) % count
        return (z * self.rows[order]).flatten(z.dim() - dims).sum(-1)


def checked_loss(loss_fn: Loss, theta: Tensor, dims: int) -> Loss:
    """loss_fn with checked shapes; one z per example, a mean of samples, counts as one sample."""
    mean = getattr(loss_fn, "mean", loss_fn)

    def loss(z: Tensor) -> Tensor:
        is_mean = z.dim() == theta.dim()
        if is_mean:
            z = z.unsqueeze(theta.dim() - dims)
        losses = mean(z) if is_mean else loss_fn(z)
        if not isinstance(losses, Tensor):
            hint = ": a loss for every sample, computed from z by PyTorch"
            refuse_type("diagnose", "loss_fn to return a tensor", losses, hint)
        if losses.is_complex():
            raise TypeError(
                f"[aimle.diagnose] expected loss_fn to return real losses but got {losses.dtype}"
            )
        wanted = z.shape[: z.dim() - dims]
        if losses.shape != wanted:
            raise ValueError(
                f"[aimle.diagnose] expected loss_fn to return {list(wanted)}, a loss for every "
                f"sample, but got {list(losses.shape)}: leave out the mean or sum over samples and "
                "examples"
            )
        if z.requires_grad and not losses.requires_grad:
            raise ValueError(
                "[aimle.diagnose] expected loss_fn to be differentiable in z but its losses have "
                'no gradient: estimators=["sfe"] needs none'
            )
        return losses

    return loss


class LossRange:
    """A loss that records its smallest and largest value for each example."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self.low = self.high = torch.tensor(math.nan)
        self.is_finite = True

    def __call__(self, z: Tensor) -> Tensor:
        losses = self.loss(z)
        seen = losses.detach()
        self.is_finite = self.is_finite and bool(seen.isfinite().all())
        self.low = torch.fmin(self.low, seen.amin(-1))
        self.high = torch.fmax(self.high, seen.amax(-1))
        return losses

    def is_a_point(self) -> bool:
        """Whether no example's loss changed by more than rounding error."""
        rounding = 8 * torch.finfo(self.high.dtype).eps
        size = torch.maximum(self.low.abs(), self.high.abs())
        return bool((self.high - self.low <= rounding * size).all())

    def description(self) -> str:
        """The value of a constant loss; empty if the loss was never called."""
        value = float(self.high.flatten()[0])
        return (
            "" if math.isnan(value) else f", it is {value:g} for all solutions of the first example"
        )
