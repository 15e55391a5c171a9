"""Unusual values that are not errors: the result is NaN, or a valid choice."""

from collections.abc import Callable

import pytest
import torch
from bad_layers import (
    KEY,
    inf,
    nan,
    topk,
)
from layer_cases import assert_same_state, randn, run, state_of
from torch import Tensor

import aimle

NANS: dict[str, tuple[dict, Callable[[Tensor], None], Callable[[Tensor], None]]] = {
    "NaN in theta": ({}, lambda x: x[0, 1].fill_(nan), lambda dy: None),
    "NaN in dy": ({}, lambda x: None, lambda dy: dy[0, 0, 1].fill_(nan)),
    "inf in dy": ({}, lambda x: None, lambda dy: dy[0, 0, 2].fill_(inf)),
    "-inf in dy": ({}, lambda x: None, lambda dy: dy[0, 0, 2].fill_(-inf)),
    "NaN in both": ({}, lambda x: x[0, 1].fill_(nan), lambda dy: dy[0, 0, 1].fill_(nan)),
    "a step that overflows": (
        {"target": aimle.FixedTarget(1e30)},
        lambda x: None,
        lambda dy: dy[0].fill_(1e30),
    ),
}


def quiet(scores: Tensor) -> Tensor:
    """A callable that answers what it cannot solve with NaN."""
    return aimle.solve(aimle.TopK(3), scores, check=False)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("stranger", [False, True], ids=["fused", "staged"])
@pytest.mark.parametrize("name", NANS)
def test_the_documented_nan(name: str, stranger: bool, symmetric: bool):
    """NaN reaches its own example's gradient and no other, and the state does not move."""
    settings, spoil_theta, spoil_dy = NANS[name]
    solver = quiet if stranger else aimle.TopK(3)
    layer = topk(solver=solver, nb_samples=1, symmetric_perturbation=symmetric, **settings)
    x, dy = randn(2, 5, dtype=torch.float32), randn(2, 1, 5, dtype=torch.float32)
    spoil_theta(x)
    spoil_dy(dy)
    dy[1] = 0.0
    before = state_of(layer)
    _, gradient = run(layer, x, dy, key=KEY)
    assert gradient[0].isnan().all()
    assert gradient[1].eq(0).all()
    assert_same_state(layer, before)


def test_infinite_scores_are_choices_not_errors():
    """+inf is always chosen and -inf never; neither moves, the rest has its gradient."""
    x = torch.tensor([[inf, 0.1, -inf, 0.3, -0.2, 0.0]], dtype=torch.float64)
    layer = topk(target=aimle.AdaptiveTarget.paper(2.0), nb_samples=50)
    z, gradient = run(layer, x, key=KEY)
    assert z[..., 0].eq(1).all()
    assert z[..., 2].eq(0).all()
    assert gradient.isfinite().all()
    assert gradient[0, [0, 2]].eq(0).all()
    assert gradient.count_nonzero() > 0
