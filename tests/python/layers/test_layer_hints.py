"""Errors of a first call say what to do: the mistakes that new users make."""

import re

import numpy as np
import pytest
import torch

import aimle

TOPK = aimle.TopK(3)
THETA = torch.zeros(4, 8)
MASK = torch.ones(4, 8, dtype=torch.bool)


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
    ],
)
def test_an_error_names_the_remedy(call, error: type[Exception], hint: str):
    with pytest.raises(error, match=re.escape(hint)):
        call()
