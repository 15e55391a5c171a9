"""A relaxation of assignments: doubly stochastic matrices by Sinkhorn's iteration."""

import torch
from torch import Tensor

from aimle.settings.checks import check_int, check_mask, check_positive, check_tensor


def sinkhorn(
    theta: Tensor,
    temperature: float = 1.0,
    iterations: int = 50,
    *,
    mask: Tensor | None = None,
) -> Tensor:
    """A soft assignment of theta [*batch, n, m], differentiable, of the same shape and dtype.

        z = aimle.Assignment()(theta)               # [*batch, n, m], zeros and ones
        soft = aimle.sinkhorn(theta, 0.1)           # a soft version, differentiable by autograd

    Approximates the maximiser of <theta, p> + temperature * H(p), H the entropy, over matrices
    whose rows (if n <= m) sum to 1 and whose columns sum to at most 1, or vice versa if n > m. Rows
    and columns of exp(theta / temperature) are normalised in turn, in the log domain, `iterations`
    times. The shorter side comes last, so its sums are exact. As temperature goes to 0 the result
    approaches ``aimle.Assignment()``; lower temperatures need more iterations.

    mask: bool, broadcastable to theta; entries that are False are 0, and rows and columns that are
        fully masked are zero.
    """
    check_tensor("sinkhorn", "theta", theta)
    check_positive("sinkhorn", "temperature", temperature)
    check_int("sinkhorn", "iterations", iterations, 1)
    if theta.dim() < 2:
        raise ValueError(
            f"[aimle.sinkhorn] expected theta to have at least 2 dimensions but got {theta.dim()}"
        )
    log_p = theta / temperature
    if mask is not None:
        check_mask("sinkhorn", mask, theta)
        log_p = log_p.masked_fill(~mask, -torch.inf)
    n, m = theta.shape[-2:]
    wide = n <= m
    log_p = log_p if wide else log_p.transpose(-2, -1)
    # An extra row takes up the surplus of the longer side.
    spare = abs(m - n)
    rest = log_p.new_zeros(*log_p.shape[:-2], 1, log_p.shape[-1]) if spare else None
    for _ in range(iterations):
        columns = _log_sum(log_p, -2)
        if rest is not None:
            columns = torch.logaddexp(columns, rest)
            rest = rest - columns
            rest = rest - _log_sum(rest, -1) + torch.tensor(float(spare)).log().to(rest)
        log_p = log_p - columns
        log_p = log_p - _log_sum(log_p, -1)
    p = log_p.exp()
    return p if wide else p.transpose(-2, -1)


def _log_sum(x: Tensor, dim: int) -> Tensor:
    """logsumexp, but 0 with a gradient of 0 where all entries are -inf."""
    top = x.detach().amax(dim, keepdim=True)
    top = torch.where(top == -torch.inf, 0.0, top)
    total = (x - top).exp().sum(dim, keepdim=True)
    some = total > 0
    return torch.where(some, torch.where(some, total, 1.0).log() + top, 0.0)
