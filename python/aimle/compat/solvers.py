"""Top-k for ``aimle``, ``imle`` and ``ste``: exactly k ones per row, in the dtype of the logits.

Ties go to the lower index. The authors' ``select_k`` uses torch.topk, whose choice among ties is
not specified; their ``mathias_select_k`` chooses all entries that reach the k-th largest value,
which are more than k if that value is tied (padding with equal logits), accepts only [B, n], and
returns float32.
"""

import torch
from torch import Tensor

from aimle.settings.checks import check_tensor
from aimle.structures import TopK


def select_k(logits: Tensor, k: int) -> Tensor:
    """The indicator of the k largest: [*batch, n] -> [*batch, n]. -inf is the lowest score."""
    check_tensor("compat.select_k", "logits", logits)
    lowest = torch.finfo(logits.dtype).min
    return TopK(k)(logits.detach().clamp_min(lowest))


def mathias_select_k(logits: Tensor, k: int, *, reference: bool = False) -> Tensor:
    """``select_k``; with reference=True, all entries that reach the k-th largest value."""
    if not reference:
        return select_k(logits, k)
    check_tensor("compat.mathias_select_k", "logits", logits)
    threshold = torch.topk(logits, k).values[..., -1:]
    return (logits >= threshold).to(logits.dtype)
