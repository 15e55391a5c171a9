"""Chains: converts label and transition scores to edge scores, and edges to labels.

scores = aimle.chain_scores(emissions, transitions)         # [B, T - 1, C, C]
mask = aimle.chain_mask(lengths, emissions.shape[-2])       # for chains of different lengths
z = layer(scores, mask=mask)                                # for example aimle.AIMLE(aimle.Chain())
labels = aimle.chain_labels(z)                              # [B, S, T], -1 past the end
"""

import torch
from torch import Tensor

from aimle.settings.checks import check_int, check_tensor


def chain_scores(emissions: Tensor, transitions: Tensor) -> Tensor:
    """The edge scores that ``Chain`` takes: [*batch, T - 1, C, C]. Differentiable in both inputs.

    emissions: [*batch, T, C], the score of label c at position t.
    transitions: [C, C], the score of going from label i to label j; or [T - 1, C, C], one matrix
        per step. Leading batch dimensions broadcast with those of emissions.

    An edge (i, j) from position t to t + 1 gets its transition score and the emission of j; the
    first edge also gets the emission of i. The score of a sequence is then the sum of its emissions
    and transitions. A chain of one position has no edges and therefore no scores: use ``Argmax`` of
    the emissions for its label.
    """
    owner = "chain_scores"
    check_tensor(owner, "emissions", emissions)
    check_tensor(owner, "transitions", transitions)
    if emissions.dim() < 2 or emissions.shape[-2] < 1 or emissions.shape[-1] < 1:
        raise ValueError(
            f"[aimle.{owner}] expected emissions [..., length, labels], neither of them 0, but got "
            f"shape {list(emissions.shape)}"
        )
    steps, labels = emissions.shape[-2] - 1, emissions.shape[-1]
    square = transitions.shape[-2:] == (labels, labels)
    if not square or (transitions.dim() > 2 and transitions.shape[-3] not in (1, steps)):
        raise ValueError(
            f"[aimle.{owner}] expected transitions [{labels}, {labels}] or [..., {steps}, "
            f"{labels}, {labels}] for emissions of shape {list(emissions.shape)} but got shape "
            f"{list(transitions.shape)}"
        )
    edges = transitions + emissions[..., 1:, None, :]
    first = edges[..., :1, :, :] + emissions[..., :-1, :, None][..., :1, :, :]
    return torch.cat([first, edges[..., 1:, :, :]], -3)


def chain_labels(z: Tensor) -> Tensor:
    """The labels of chains: z [*batch, T - 1, C, C] -> int64 [*batch, T].

    -1 past the end of a chain shortened by a mask, for the only label of a chain of length 1, which
    has no edges to read it from, and for chains without a solution, whose z is NaN.
    """
    check_tensor("chain_labels", "z", z)
    if z.dim() < 3 or z.shape[-1] != z.shape[-2] or z.shape[-1] < 1:
        raise ValueError(
            "[aimle.chain_labels] expected z [..., length - 1, labels, labels] but got shape "
            f"{list(z.shape)}"
        )
    into, out_of = z.sum(-2), z[..., :1, :, :].sum(-1)
    if z.shape[-3] == 0:
        return z.new_full((*z.shape[:-3], 1), -1, dtype=torch.int64)
    chosen = torch.cat([out_of, into], -2)
    return chosen.argmax(-1).masked_fill(~(chosen > 0).any(-1), -1)


def chain_mask(lengths: Tensor, length: int) -> Tensor:
    """The mask for chains of these lengths, for scores of `length` positions.

    lengths: int64 [*batch], each from 0 to `length`. Returns bool [*batch, length - 1, 1, 1], which
    broadcasts to scores: a step is kept if the position it leads to is within the chain. ``Chain``
    treats trailing positions whose edges are all masked as past the end.
    """
    check_tensor("chain_mask", "lengths", lengths)
    length = check_int("chain_mask", "length", length, 1)
    if lengths.is_cpu and type(lengths) is Tensor and not torch.compiler.is_compiling():
        wrong = lengths[(lengths < 0) | (lengths > length)]
        if wrong.numel() > 0:
            raise ValueError(
                f"[aimle.chain_mask] expected lengths from 0 to length={length} but got "
                f"{wrong[0].item()}"
            )
    steps = torch.arange(1, length, device=lengths.device)
    return (steps < lengths.unsqueeze(-1))[..., None, None]
