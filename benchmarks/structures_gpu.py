"""Solvers of batches of structures on the GPU, beside this library's CPU solvers and, for
assignments, beside torch-linear-assignment where that is installed.

Results are checked first: the GPU's solutions are the CPU's, entry by entry, and the assignments of
torch-linear-assignment have the same total cost.

    python benchmarks/structures_gpu.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from path_rows import neighbours
from torch import Tensor

import aimle


@dataclass(frozen=True)
class Case:
    name: str
    solver: aimle.Solver
    shape: tuple[int, ...]
    positive: bool = False

    def scores(self) -> Tensor:
        generator = torch.Generator().manual_seed(1)
        if self.positive:
            return torch.rand(self.shape, generator=generator) + 0.1
        return torch.randn(self.shape, generator=generator)


def cases() -> list[Case]:
    edges = np.stack(neighbours(30), 1)
    graph = aimle.GraphPath(edges, 0, 899)
    weights = torch.randint(1, 30, (200,), generator=torch.Generator().manual_seed(2))
    return [
        Case("assignments 16 x 16", aimle.Assignment(), (256, 16, 16)),
        Case("assignments 16 x 16", aimle.Assignment(), (8192, 16, 16)),
        Case("assignments 64 x 64", aimle.Assignment(), (256, 64, 64)),
        Case("chains of 50, 20 labels", aimle.Chain(), (128, 49, 20, 20)),
        Case("chains of 50, 20 labels", aimle.Chain(), (2048, 49, 20, 20)),
        Case("arborescences of 20", aimle.Arborescence(), (1024, 20, 20)),
        Case("lattices 50 x 50", aimle.LatticePath(), (1024, 50, 50)),
        Case("paths in a graph of 30 x 30", graph, (70, edges.shape[0]), positive=True),
        Case("knapsacks of 200 items", aimle.Knapsack(weights, 1000), (1024, 200)),
        Case("switches", aimle.Bernoulli(), (20_000, 50)),
    ]


def seconds(call: Callable[[], object], on_gpu: bool, rounds: int = 15) -> float:
    """The median of rounds that last at least 10 ms each."""

    def lasts(calls: int) -> float:
        if on_gpu:
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        if on_gpu:
            torch.cuda.synchronize()
        return (time.perf_counter() - start) / calls

    lasts(3)
    calls = max(1, int(0.01 / lasts(3)))
    return statistics.median(lasts(calls) for _ in range(rounds))


def torch_linear_assignment(scores: Tensor) -> Callable[[], Tensor] | None:
    try:
        from torch_linear_assignment import batch_linear_assignment
    except ImportError:
        return None
    costs = -scores
    return lambda: batch_linear_assignment(costs)


def main() -> None:
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, aimle {aimle.__version__}")
    print(f"{torch.get_num_threads()} threads on the CPU")
    heading = f"{'structures':27} {'batch':>6} {'GPU us':>8} {'CPU us':>8} {'times':>6}"
    print(f"{heading} {'other us':>9}")
    for case in cases():
        host = case.scores()
        device = host.to("cuda")
        assert torch.equal(case.solver(device).cpu(), case.solver(host))
        gpu = seconds(lambda s=case.solver, x=device: s(x), on_gpu=True)
        cpu = seconds(lambda s=case.solver, x=host: s(x), on_gpu=False)
        line = f"{case.name:27} {len(host):6} {gpu * 1e6:8.1f} {cpu * 1e6:8.1f} {cpu / gpu:6.1f}"
        if isinstance(case.solver, aimle.Assignment):
            other = torch_linear_assignment(device)
            if other is None:
                line += "  torch-linear-assignment is not installed"
            else:
                chosen = device.gather(2, other().long().unsqueeze(2)).sum((1, 2))
                best = (device * case.solver(device)).sum((1, 2))
                torch.testing.assert_close(chosen, best)
                line += f" {seconds(other, on_gpu=True) * 1e6:9.1f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
