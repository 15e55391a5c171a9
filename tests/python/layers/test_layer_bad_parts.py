"""Faulty callable solvers, and wrong arguments of the layers' ops."""

import pytest
import torch
from bad_layers import (
    META,
    Misuse,
    applied_with,
    assert_refused,
    backward_handed,
    difference_handed,
    forward_difference,
    misbehaves,
    raises,
    step_with,
    sum_of_gamma,
    theta,
    topk,
)
from layer_cases import run

import aimle

CALLS: dict[str, Misuse] = {
    # What the layer hands its ops.
    "alpha missing": (topk, backward_handed(alpha=None), ValueError, ("adaptive", "alpha")),
    "alpha of float32": (
        topk,
        backward_handed(alpha=torch.tensor(1.0)),
        TypeError,
        ("alpha", "float64", "float32"),
    ),
    "gbar missing": (topk, backward_handed(gbar=None), ValueError, ("adaptive", "gbar")),
    "updates of another shape": (
        topk,
        backward_handed(updates=torch.zeros(2, dtype=torch.int64)),
        ValueError,
        ("updates", "[]", "[2]"),
    ),
    "stats of another shape": (
        topk,
        backward_handed(stats=torch.zeros(3, dtype=torch.float64)),
        ValueError,
        ("stats", "[14]", "[3]"),
    ),
    "counts to apply of another shape": (
        topk,
        applied_with(torch.zeros(2, dtype=torch.float64)),
        ValueError,
        ("counts", "[3]", "[2]"),
    ),
    "counts to apply of another type": (
        topk,
        applied_with(torch.zeros(3)),
        TypeError,
        ("counts", "float64", "float32"),
    ),
    "no room for counts": (
        topk,
        applied_with(torch.zeros(3, dtype=torch.float64), waiting=0),
        ValueError,
        ("apply_counts", "stats", "[17]"),
    ),
    "counts for a fixed step": (
        lambda: topk(target=aimle.FixedTarget(1.0)),
        applied_with(torch.zeros(3, dtype=torch.float64)),
        ValueError,
        ("apply_counts", "adaptive"),
    ),
    "bits of another shape": (
        forward_difference,
        backward_handed(bits=torch.zeros(1, 1, dtype=torch.uint8)),
        ValueError,
        ("bits", "[4, 1]", "[1, 1]"),
    ),
    "table missing": (
        sum_of_gamma,
        backward_handed(table=None),
        ValueError,
        ("sum_of_gamma", "table"),
    ),
    "table of another shape": (
        sum_of_gamma,
        backward_handed(table=torch.zeros(7)),
        ValueError,
        ("table", "[2056]", "[7]"),
    ),
    "no alpha to step with": (topk, step_with(None), ValueError, ("adaptive", "alpha")),
    "alpha to step with of float32": (
        topk,
        step_with(torch.tensor(0.5)),
        TypeError,
        ("alpha", "float64", "float32"),
    ),
    "z of another shape": (
        topk,
        difference_handed(z_left=torch.zeros(4, 4).double()),
        ValueError,
        ("z_left", "[4, 5]", "[4, 4]"),
    ),
    "z of another type": (
        topk,
        difference_handed(z_right=torch.zeros(4, 5)),
        TypeError,
        ("z_right", "float64", "float32"),
    ),
    "lambda of another shape": (
        topk,
        difference_handed(lambda_=torch.zeros(2, 2).double()),
        ValueError,
        ("lambda_", "[2, 4]", "[2, 2]"),
    ),
    "counts of another shape": (
        topk,
        difference_handed(counted=torch.zeros(1, 2, dtype=torch.uint8)),
        ValueError,
        ("counted", "[2, 2]", "[1, 2]"),
    ),
    # Callable solvers, in forward and in backward.
    "a solver that raises": (
        lambda: topk(solver=misbehaves(raises)),
        lambda f: f(theta()),
        LookupError,
        ("the solver's own words",),
    ),
    "a solver that returns no tensor": (
        lambda: topk(solver=misbehaves(lambda x: x.tolist())),
        lambda f: f(theta()),
        TypeError,
        ("solver", "tensor", "list"),
    ),
    "a solver that returns another shape": (
        lambda: topk(solver=misbehaves(lambda x: x[:, :2])),
        lambda f: f(theta()),
        ValueError,
        ("solver", "shape", "[4, 5]", "[4, 2]"),
    ),
    "a solver that returns another type": (
        lambda: topk(solver=misbehaves(lambda x: x + 0j)),
        lambda f: f(theta()),
        TypeError,
        ("solver", "dtype", "torch.float64", "torch.complex128"),
    ),
    "a solver that returns words": (
        lambda: topk(solver=misbehaves(lambda x: x.numpy().astype(str))),
        lambda f: f(theta()),
        TypeError,
        ("solver", "numbers", "array of <U"),
    ),
    "a solver that returns fractions": (
        lambda: topk(solver=misbehaves(lambda x: x.softmax(-1).round(decimals=2))),
        lambda f: f(theta()),
        ValueError,
        ("solver", "fractional", "row 0", "fractional=True"),
    ),
    "a solver that returns another device": (
        lambda: topk(solver=misbehaves(lambda x: x.to(META))),
        lambda f: f(theta()),
        ValueError,
        ("solver", "device", "cpu", "meta"),
    ),
    "a solver that raises in backward": (
        lambda: topk(solver=misbehaves(raises, on_call=3)),
        lambda f: run(f, theta()),
        LookupError,
        ("the solver's own words",),
    ),
    "a solver that returns another shape in backward": (
        lambda: topk(solver=misbehaves(lambda x: x[:, :2], on_call=2)),
        lambda f: run(f, theta()),
        ValueError,
        ("solver", "shape", "[4, 5]", "[4, 2]"),
    ),
    "costs that the solver refuses": (
        lambda: topk(solver=aimle.GridPath(negative="error"), noise=None),
        lambda f: f(torch.full((2, 3, 3), -1.0)),
        ValueError,
        ("row 0", "sample 0", "costs >= 0", 'negative="error"'),
    ),
    "costs that the solver refuses after the step": (
        lambda: topk(
            solver=aimle.GridPath(negative="error"),
            noise=None,
            target=aimle.AdaptiveTarget.paper(5.0),
        ),
        lambda f: run(f, torch.ones(2, 3, 3)),
        ValueError,
        ("row 0", "sample 0", "costs >= 0", 'negative="error"', "step"),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_bad_call_raises_and_leaves_the_state_alone(name: str):
    assert_refused(CALLS[name])
