"""One row of a benchmark: this library compared with a common alternative."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

import aimle


@dataclass(frozen=True)
class Row:
    """One comparison. `check` raises if the two sides disagree."""

    name: str
    instead: str
    ours: Callable[[], object]
    theirs: Callable[[], object]
    check: Callable[[], None]
    aim: float


def _elapsed(run: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


def _repeats(run: Callable[[], object], seconds: float) -> int:
    run()
    return max(1, int(seconds / max(_elapsed(run, 1), 1e-7)))


def measure(row: Row, rounds: int = 7) -> tuple[float, float]:
    """Median seconds of both sides, measured alternately so that noise affects both equally."""
    row.check()
    mine, other = _repeats(row.ours, 0.03), _repeats(row.theirs, 0.03)
    times = [(_elapsed(row.ours, mine), _elapsed(row.theirs, other)) for _ in range(rounds)]
    return statistics.median(t[0] for t in times), statistics.median(t[1] for t in times)


class _SameSettings:
    """A function from scores to solutions, as a callable with the properties of a native solver."""

    def __init__(self, function: Callable[[Tensor], Tensor], solver: aimle.Solver) -> None:
        self.function = function
        self.sense, self.instance_dims = solver.sense, solver.instance_dims
        self.fixed_size = solver.fixed_size

    def __call__(self, scores: Tensor) -> Tensor:
        return self.function(scores)


def gradient_of(layer: Callable[..., Tensor], theta: Tensor, dy: Tensor, **call: Tensor) -> Tensor:
    """Forward and backward."""
    leaf = theta.detach().requires_grad_()
    layer(leaf, **call).backward(dy)
    assert leaf.grad is not None
    return leaf.grad


def training_row(
    name: str,
    instead: str,
    solver: aimle.Solver,
    theirs: Callable[[Tensor], Tensor],
    theta: Tensor,
    aim: float,
) -> Row:
    """Forward and backward of a layer, compared with the same layer over a Python function.

    Both have the same noise and step. Gradients are compared in float64, where rounding does not
    decide between solutions.
    """
    noise = {"noise": solver.default_noise, "temperature": solver.default_temperature}
    target = aimle.AdaptiveTarget.constant(1.0, scale="noise")
    layers = [
        aimle.AIMLE(s, target=target, **noise) for s in (solver, _SameSettings(theirs, solver))
    ]
    shape = (theta.shape[0], 1, *theta.shape[1:])
    dy = torch.randn(shape, generator=torch.Generator().manual_seed(7))
    key = torch.tensor([3, 4])

    def check() -> None:
        ours, others = (gradient_of(each, theta.double(), dy.double(), key=key) for each in layers)
        assert (ours != 0).any()
        torch.testing.assert_close(ours, others)

    return Row(
        f"{name}, backward",
        instead,
        lambda: gradient_of(layers[0], theta, dy),
        lambda: gradient_of(layers[1], theta, dy),
        check,
        aim,
    )
