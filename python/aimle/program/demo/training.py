"""Learns the costs of maps from their shortest paths alone.

Terrain maps are generated: smooth noise cut into five terrains, each with a cost and a colour. A
small network gets the (noisy) colours and predicts the cost of every cell; a shortest-path solver
turns the costs into a path; the loss counts the cells in which that path differs from the true one.
The gradient passes through the solver by AIMLE, by IMLE with a badly chosen step, or
straight-through.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

import aimle
from aimle.program.progress import Progress

COSTS = torch.tensor([0.8, 1.2, 5.3, 7.7, 9.2])
SAND, GRASS, FOREST = [0.85, 0.75, 0.45], [0.45, 0.70, 0.30], [0.15, 0.40, 0.15]
ROCK, WATER = [0.50, 0.45, 0.40], [0.15, 0.35, 0.75]
COLOURS = torch.tensor([SAND, GRASS, FOREST, ROCK, WATER])


@dataclass(frozen=True)
class Maps:
    """colours [N, 3, K, K], true costs [N, K, K], shortest paths [N, K, K]."""

    colours: Tensor
    costs: Tensor
    paths: Tensor


def make_maps(count: int, size: int, seed: int) -> Maps:
    """Deterministic in the seed."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.randn(count, 1, size // 3 + 1, size // 3 + 1, generator=generator)
    height = nn.functional.interpolate(coarse, size=(size, size), mode="bicubic")[:, 0]
    edges = torch.tensor([-0.6, -0.1, 0.3, 0.8])
    terrain = torch.bucketize(height, edges)
    colours = COLOURS[terrain].permute(0, 3, 1, 2)
    colours = colours + 0.05 * torch.randn(colours.shape, generator=generator)
    costs = COSTS[terrain]
    return Maps(colours, costs, aimle.solve(aimle.GridPath(), costs))


def make_network() -> nn.Module:
    """Colours [N, 3, K, K] to positive costs [N, 1, K, K]."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 1), nn.ReLU(), nn.Conv2d(32, 32, 1), nn.ReLU(),
        nn.Conv2d(32, 1, 1), nn.Softplus(),
    )  # fmt: skip


@dataclass
class Curve:
    """Share of test maps whose predicted path is as cheap as the true one, over training steps."""

    name: str
    network: nn.Module
    steps: list[int] = field(default_factory=list)
    optimal: list[float] = field(default_factory=list)
    ratio: float = float("nan")


def evaluate(network: nn.Module, maps: Maps) -> tuple[float, float]:
    """(share of optimal paths, mean cost ratio), by true costs."""
    with torch.no_grad():
        paths = aimle.solve(aimle.GridPath(), network(maps.colours)[:, 0])
    found = (paths * maps.costs).sum((1, 2))
    best = (maps.paths * maps.costs).sum((1, 2))
    ratio = found / best
    return (ratio < 1 + 1e-5).double().mean().item(), ratio.mean().item()


def methods() -> dict[str, Callable[[], nn.Module]]:
    """The three layers; all use the same noise."""
    path = aimle.GridPath()
    return {
        "AIMLE": lambda: aimle.AIMLE(path),
        "IMLE, bad lambda": lambda: aimle.IMLE(path, target=aimle.FixedTarget(0.05)),
        "STE": lambda: aimle.STE(path),
    }


def train(name: str, layer: nn.Module, maps: Maps, test: Maps, steps: int, batch: int) -> Curve:
    """Trains on `maps`, with about twenty evaluations on `test`."""
    torch.manual_seed(0)
    network = make_network()
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    curve = Curve(name, network)
    order = torch.Generator().manual_seed(1)
    every = max(1, steps // 20)
    with Progress(name, steps) as progress:
        for step in range(1, steps + 1):
            rows = torch.randint(len(maps.costs), (batch,), generator=order)
            truth = maps.paths[rows].unsqueeze(1)
            z = layer(network(maps.colours[rows])[:, 0])
            loss = (z * (1 - truth) + (1 - z) * truth).sum((2, 3)).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if step % every == 0:
                share, curve.ratio = evaluate(network, test)
                curve.steps.append(step)
                curve.optimal.append(share)
            alpha = getattr(layer, "alpha", None)
            note = "" if alpha is None else f", alpha {alpha.item():.3f}"
            progress.step(f"wrong cells {loss.item():5.2f}{note}")
    return curve


def run(steps: int = 600, size: int = 12, batch: int = 32) -> tuple[list[Curve], Maps]:
    """Trains every method on the same maps."""
    maps, test = make_maps(1000, size, seed=0), make_maps(500, size, seed=1)
    curves = [train(name, make(), maps, test, steps, batch) for name, make in methods().items()]
    return curves, test


def print_table(curves: list[Curve]) -> None:
    print(f"\n{'method':20}{'optimal paths':>15}{'mean cost ratio':>18}")
    for curve in curves:
        print(f"{curve.name:20}{curve.optimal[-1]:15.1%}{curve.ratio:18.3f}")


def draw(curves: list[Curve], test: Maps, path: Path, maps: int = 4) -> None:
    """Test maps with true and predicted paths, and the learning curves."""
    from aimle.program.report import figures

    rows = len(curves)
    figure = figures.plt.figure(figsize=(2.3 * maps + 5.2, 2.3 * rows), layout="constrained")
    grid = figure.add_gridspec(rows, maps + 2)
    for row, curve in enumerate(curves):
        with torch.no_grad():
            found = aimle.solve(aimle.GridPath(), curve.network(test.colours[:maps])[:, 0])
        for column in range(maps):
            axis = figure.add_subplot(grid[row, column])
            axis.imshow(test.colours[column].clamp(0, 1).permute(1, 2, 0))
            for z, style in ((test.paths, "wo"), (found, "r.")):
                y, x = torch.nonzero(z[column], as_tuple=True)
                axis.plot(x, y, style, markersize=7 if style == "wo" else 6)
            axis.set_xticks([])
            axis.set_yticks([])
            if column == 0:
                axis.set_ylabel(curve.name)
    axis = figure.add_subplot(grid[:, maps:])
    for curve in curves:
        axis.plot(curve.steps, curve.optimal, label=curve.name)
    axis.set_xlabel("training step")
    axis.set_ylabel("share of test maps with an optimal path")
    axis.set_ylim(0, 1)
    axis.legend()
    axis.set_title("white: true path, red: predicted")
    figures.save(figure, path, dpi=110)
    figures.plt.close(figure)
