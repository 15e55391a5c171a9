"""A relaxation of assignments: doubly stochastic matrices by Sinkhorn's iteration."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from aimle.settings.checks import check_int, check_mask, check_positive, check_tensor


def sinkhorn(
    theta: Tensor, temperature: float = 1.0, iterations: int = 50, *, mask: Tensor | None = None
) -> Tensor:
    """A soft assignment of theta [*batch, n, m], differentiable, of the same shape and dtype.

        z = aimle.Assignment()(theta)               # [*batch, n, m], zeros and ones
        soft = aimle.sinkhorn(theta, 0.1)           # a soft version, differentiable by autograd

    Approximates the maximiser of <theta, p> + temperature * H(p), H the entropy, over matrices
    whose rows (if n <= m) sum to 1 and whose columns sum to at most 1, or vice versa if n > m. Rows
    and columns of exp(theta / temperature) are normalised in turn, in the log domain, `iterations`
    times. The shorter side comes last, so its sums are exact. As temperature goes to 0 the result
    approaches ``aimle.Assignment()``; lower temperatures need more iterations.

    mask: bool, broadcastable to theta; entries that are False are 0. Rows and columns that are
        fully masked are zero, and the others get the soft assignment of the matrix without them,
        so a batch may contain matrices of different sizes.
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
    if theta.numel() == 0:
        return log_p
    wide = theta.shape[-2] <= theta.shape[-1]
    log_p = log_p if wide else log_p.transpose(-2, -1)
    n, m = log_p.shape[-2:]
    live = log_p.detach() != -torch.inf
    rows, columns = live.any(-1, keepdim=True), live.any(-2, keepdim=True)
    surplus = columns.sum(-1, keepdim=True) - rows.sum(-2, keepdim=True)
    # An extra row takes up the surplus of columns, an extra column that of rows.
    extra = pad(columns & (surplus > 0), (0, 1, n, 0)) | pad(rows & (surplus < 0), (m, 0, 0, 1))
    log_p = pad(log_p, (0, 1, 0, 1), value=-torch.inf).masked_fill(extra, 0.0)
    spare = surplus.abs().clamp(min=1).to(log_p).log()
    row_sums, column_sums = pad(spare, (0, 0, n, 0)), pad(spare, (m, 0))
    for _ in range(iterations):
        log_p = log_p - _log_sum(log_p, -2) + column_sums
        log_p = log_p - _log_sum(log_p, -1) + row_sums
    if mask is not None:  # which may leave more rows than columns
        last = log_p - _log_sum(log_p, -2) + column_sums
        log_p = torch.where(surplus < 0, last, log_p)
    p = log_p[..., :-1, :-1].exp()
    return p if wide else p.transpose(-2, -1)


def _log_sum(x: Tensor, dim: int) -> Tensor:
    """logsumexp, but 0 with a gradient of 0 where all entries are -inf."""
    top = x.detach().amax(dim, keepdim=True)
    top = torch.where(top == -torch.inf, 0.0, top)
    total = (x - top).exp().sum(dim, keepdim=True)
    some = total != 0  # also for NaN, which spreads
    return torch.where(some, torch.where(some, total, 1.0).log() + top, 0.0)
