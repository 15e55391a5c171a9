"""Errors of a first call say what to do: the mistakes that new users make."""

import re
import sys

import numpy as np
import pytest
import torch

import aimle

TOPK = aimle.TopK(3)
THETA = torch.zeros(4, 8)
MASK = torch.ones(4, 8, dtype=torch.bool)
BIG_KNAPSACK = aimle.Knapsack.pack([20] * 8, 40)


@pytest.mark.parametrize(
    ("call", "error", "hint"),
    [
        (lambda: aimle.AIMLE(TOPK)(np.zeros((4, 8))), TypeError, "pass torch.as_tensor(theta)"),
        (lambda: aimle.AIMLE(TOPK)([[1.0, 2.0]]), TypeError, "pass torch.as_tensor(theta)"),
        (lambda: aimle.solve(TOPK, np.zeros((4, 8))), TypeError, "pass torch.as_tensor(scores)"),
        (lambda: aimle.AIMLE(TOPK)(THETA.long()), TypeError, "pass theta.float()"),
        (lambda: aimle.AIMLE(TOPK)(THETA, key=3), TypeError, "torch.tensor([seed, step])"),
        (lambda: aimle.AIMLE(TOPK)(THETA, MASK), TypeError, "pass mask, k, data and key by name"),
        (lambda: aimle.AIMLE(TOPK)(THETA, masks=MASK), TypeError, "did you mean 'mask'?"),
        (lambda: aimle.AIMLE(TOPK)(THETA, depth=2), TypeError, "it takes mask, k, data, key"),
        (lambda: aimle.AIMLE(TOPK, lambda_=3.0), TypeError, "for a fixed one use aimle.IMLE"),
        (lambda: aimle.AIMLE(TOPK, lambd=3.0), TypeError, "for a fixed one use aimle.IMLE"),
        (lambda: aimle.AIMLE("topk"), TypeError, "'topk': aimle.solver makes one by name"),
        (lambda: aimle.AIMLE(TOPK, noise=aimle.Gumbel), ValueError, "the class Gumbel itself"),
        (
            lambda: aimle.AIMLE(aimle.Knapsack([1, 2, 3], 3))(THETA),
            ValueError,
            "expected values of the 3 items, [*batch, 3], but got shape [4, 8]",
        ),
        (
            lambda: aimle.solve(aimle.Knapsack([1], 0), THETA + 1, data=BIG_KNAPSACK),
            ValueError,
            "raise the solver's max_capacity",
        ),
        (lambda: aimle.AIMLE(TOPK)(THETA, mask=MASK.float()), TypeError, "pass mask.bool()"),
        (lambda: aimle.SFE(TOPK)(THETA, mask=MASK.float()), TypeError, "pass mask.bool()"),
        (lambda: aimle.AIMLE(TOPK)(THETA, k=torch.ones(4)), TypeError, "pass k.long()"),
        (
            lambda: aimle.AIMLE(lambda x: x.topk(3).indices)(THETA),
            ValueError,
            "the shape [4, 8] of its input but returned [4, 3]: return an entry for every score",
        ),
        (lambda: aimle.AIMLE(lambda x: x.topk(3))(THETA), TypeError, "an entry for every score"),
        (lambda: setattr(aimle.AIMLE(TOPK), "noise", "normal"), AttributeError, "make a new layer"),
        (lambda: setattr(aimle.AIMLE(TOPK), "alpha", 0.5), TypeError, "layer.alpha.fill_(0.5)"),
        (
            lambda: aimle.spo_plus_loss(THETA, THETA, TOPK, reduction="mean"),
            TypeError,
            "a loss for every example: take the mean()",
        ),
        (
            lambda: aimle.diagnose(TOPK, THETA, lambda z: z.square().mean()),
            ValueError,
            "leave out the mean or sum",
        ),
        (lambda: aimle.GraphPath([[0, 1, 2], [1, 2, 3]], 0, 3), ValueError, "pass edges.mT"),
        (lambda: aimle.chain_mask(torch.tensor([2, 6]), 5), ValueError, "0 to length=5 but got 6"),
        (
            lambda: aimle.solve(aimle.LatticePath(moves="diagonal"), torch.zeros(2, 3)),
            ValueError,
            "or the shape leave no connected solution",
        ),
    ],
)
def test_an_error_names_the_remedy(call, error: type[Exception], hint: str):
    with pytest.raises(error, match=re.escape(hint)):
        call()


def one_matrix(scores: torch.Tensor) -> torch.Tensor:
    if scores.dim() != 2:
        raise ValueError("expected a matrix")
    return TOPK(scores)


def by_example(scores: torch.Tensor, budget: torch.Tensor) -> torch.Tensor:
    return (scores > budget[:, None]).float()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have no notes")
def test_an_error_of_the_solver_gets_a_note_about_its_arguments():
    with pytest.raises(ValueError, match="expected a matrix") as error:
        aimle.AIMLE(one_matrix)(torch.zeros(2, 4, 8))
    assert "shape [2, 4, 8], 2 instances" in error.value.__notes__[0]
    assert "aimle.per_instance" in error.value.__notes__[0]
    with pytest.raises(RuntimeError, match="must match the size") as error:
        aimle.AIMLE(by_example, nb_samples=2)(THETA, torch.zeros(4))
    assert "repeat_arguments=True" in error.value.__notes__[0]
