"""Forward and backward of the layers on the GPU, from Python: eager, and as a captured graph.

`make bench-gpu` runs it. Before timing, z, gradient and alpha are compared bit for bit with the
CPU's. `aim` is the target time; `authors` is the time reported for the authors' layer on an H200,
forward and backward. Eager times are mostly those of the host, so those of `torch.relu` and of a
multiplication are printed first.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import torch
from torch import Tensor

import aimle


@dataclass(frozen=True)
class Case:
    name: str
    shape: tuple[int, ...]
    samples: int
    solver: aimle.Solver
    noise: aimle.Noise
    aim_eager_us: float
    aim_graph_us: float
    authors_ms: float

    def theta(self) -> Tensor:
        theta = torch.randn(self.shape, generator=torch.Generator().manual_seed(0))
        return theta.abs() + 1.0 if self.solver.sense == "min" else theta

    def layer(self) -> aimle.AIMLE:
        return aimle.AIMLE(
            self.solver,
            nb_samples=self.samples,
            noise=self.noise,
            target=aimle.AdaptiveTarget(0.5),
        )

    def gradient(self) -> Tensor:
        shape = (self.shape[0], self.samples, *self.shape[1:])
        return torch.randn(shape, generator=torch.Generator().manual_seed(1))


SOG, GUMBEL = aimle.SumOfGamma(10), aimle.Gumbel()
CASES = [
    Case("10 of 20, SoG, 2000, S = 10", (2000, 20), 10, aimle.TopK(10), SOG, 150, 40, 4.4),
    Case("trees of 10, 128", (128, 90), 1, aimle.SpanningTree(10), GUMBEL, 150, 60, 132),
    Case("grids 12 x 12, 70", (70, 12, 12), 1, aimle.GridPath(), SOG, 300, 200, 293),
    Case("grids 30 x 30, 70", (70, 30, 30), 1, aimle.GridPath(), SOG, 1000, 1000, 2054),
]


def run(layer: torch.nn.Module, theta: Tensor, dy: Tensor, key: Tensor | None = None) -> Tensor:
    theta.grad = None
    layer(theta, key=key).backward(dy)
    return theta.grad


def check(case: Case) -> None:
    results = []
    for device in ("cpu", "cuda"):
        layer = case.layer().to(device)
        theta = case.theta().to(device).requires_grad_()
        key = torch.tensor([1, 2], device=device)
        with torch.no_grad():
            z = layer(theta, key=key)
        gradient = run(layer, theta, case.gradient().to(device), key)
        results.append([z.cpu(), gradient.cpu(), layer.alpha.cpu()])
    for cpu, gpu in zip(*results, strict=True):
        assert torch.equal(cpu, gpu), case.name


def median_us(call, rounds: int = 30, calls: int = 20) -> float:
    for _ in range(20):
        call()
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / calls * 1e6)
    return statistics.median(times)


def time_case(case: Case) -> tuple[float, float]:
    layer = case.layer().to("cuda")
    theta, dy = case.theta().to("cuda").requires_grad_(), case.gradient().to("cuda")
    eager = median_us(lambda: run(layer, theta, dy))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run(layer, theta, dy)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run(layer, theta, dy)
    return eager, median_us(graph.replay)


def plain_us(function) -> float:
    """Forward and backward of an operation that takes almost no GPU time."""
    theta = torch.randn(2000, 20, device="cuda").requires_grad_()
    dy = torch.ones_like(theta)

    def call() -> None:
        theta.grad = None
        function(theta).backward(dy)

    return median_us(call)


def main() -> None:
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, aimle {aimle.__version__}")
    relu, product = plain_us(torch.relu), plain_us(lambda theta: theta * 2.0)
    print(f"eager forward + backward of torch.relu {relu:.1f} us, of a product {product:.1f} us")
    print(
        f"{'forward + backward':30} {'eager us':>9} {'(aim)':>7} {'graph us':>9} {'(aim)':>7}"
        f" {'authors us':>11} {'times':>7}"
    )
    for case in CASES:
        try:
            check(case)
            eager, graph = time_case(case)
        except RuntimeError as error:
            print(f"{case.name:30} {error}")
            continue
        authors = 1000 * case.authors_ms
        print(
            f"{case.name:30} {eager:9.1f} {case.aim_eager_us:7.0f} {graph:9.1f}"
            f" {case.aim_graph_us:7.0f} {authors:11.0f} {authors / eager:6.0f}x"
        )


if __name__ == "__main__":
    main()
