"""One row of a benchmark: this library compared with a common alternative."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

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


def training_row(
    name: str, solver: aimle.Solver, scores: torch.Tensor, theirs: Callable[[], object], of: Row
) -> Row:
    """A training step of the solver's layer, compared with the solves of a Python function."""
    generator = torch.Generator().manual_seed(7)
    layer, theta = aimle.AIMLE(solver), scores.clone().requires_grad_()
    with torch.no_grad():
        dy = torch.randn(layer(theta).shape, generator=generator).to(scores)
    solves = 3 if layer.difference == "central" else 2

    def ours() -> None:
        theta.grad = None
        layer(theta).backward(dy)

    def their_solves() -> None:
        for _ in range(solves):
            theirs()

    return Row(
        f"{name}, backward", f"{of.instead}, {solves} x", ours, their_solves, of.check, of.aim
    )
