"""A batch of each structure: solved, checked, timed against an alternative, and drawn."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import aimle


@dataclass(frozen=True)
class Structure:
    """One structure: a batch of instances, our solver, and an alternative to compare with."""

    name: str
    solver: aimle.Solver
    scores: torch.Tensor
    peer_name: str
    peer: Callable[[np.ndarray], float]  # one instance -> value of its best structure
    peer_rows: int  # how many rows the peer is timed on

    def value(self, z: torch.Tensor) -> torch.Tensor:
        return (self.scores * z).flatten(1).sum(1)


def _numpy_topk(k: int) -> Callable[[np.ndarray], float]:
    return lambda row: float(np.partition(row, -k)[-k:].sum())


def _scipy_tree(vertices: int) -> Callable[[np.ndarray], float]:
    from scipy.sparse.csgraph import minimum_spanning_tree

    upper = np.triu_indices(vertices, 1)

    def solve(row: np.ndarray) -> float:
        shift = row.max() + 1.0  # SciPy minimises and takes zeros for missing edges
        weights = np.zeros((vertices, vertices))
        weights[upper] = shift - row
        return shift * (vertices - 1) - float(minimum_spanning_tree(weights).sum())

    return solve


def _networkx_path() -> Callable[[np.ndarray], float]:
    import networkx as nx

    def solve(cost: np.ndarray) -> float:
        height, width = cost.shape
        neighbours = nx.strong_product(nx.path_graph(height), nx.path_graph(width))
        graph = nx.DiGraph(neighbours)
        for cell, neighbour in graph.edges:
            graph.edges[cell, neighbour]["weight"] = float(cost[neighbour])
        length = nx.dijkstra_path_length(graph, (0, 0), (height - 1, width - 1))
        return float(cost[0, 0]) + length

    return solve


def structures(rows: int = 2048, seed: int = 0) -> list[Structure]:
    """A batch of every structure the library can solve."""
    generator = torch.Generator().manual_seed(seed)

    def scores(*instance: int) -> torch.Tensor:
        return torch.randn(rows, *instance, generator=generator)

    coarse = torch.rand(rows, 1, 5, 5, generator=generator)
    smooth = torch.nn.functional.interpolate(coarse, size=(12, 12), mode="bicubic")[:, 0]
    costs = smooth.clamp_min(0) * 8 + 0.5
    tree, path = aimle.SpanningTree(10), aimle.GridPath()
    return [
        Structure("argmax of 20", aimle.Argmax(), scores(20), "NumPy", lambda r: r.max(), 2000),
        Structure("10 of 20", aimle.TopK(10), scores(20), "NumPy", _numpy_topk(10), 2000),
        Structure("10 of 350", aimle.TopK(10), scores(350), "NumPy", _numpy_topk(10), 2000),
        Structure("tree on 10 vertices", tree, scores(45), "SciPy", _scipy_tree(10), 200),
        Structure("path on 12 x 12", path, costs, "NetworkX", _networkx_path(), 40),
    ]


def _time_per_row(run: Callable[[], object], rows: int, seconds: float = 0.2) -> float:
    run()
    repeats, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        run()
        repeats += 1
    return (time.perf_counter() - start) / (repeats * rows)


def compare(structure: Structure) -> tuple[float, float]:
    """Seconds per solve, ours and the peer's, after checking that both find the same value."""
    z = aimle.solve(structure.solver, structure.scores)
    rows = structure.scores[: structure.peer_rows].double().numpy()
    theirs = [structure.peer(row) for row in rows]
    np.testing.assert_allclose(structure.value(z)[: len(rows)].numpy(), theirs, rtol=1e-4)
    ours = _time_per_row(
        lambda: aimle.solve(structure.solver, structure.scores), len(structure.scores)
    )
    return ours, _time_per_row(lambda: [structure.peer(row) for row in rows], len(rows))


def _draw_path(axis, costs: np.ndarray, z: np.ndarray) -> None:
    axis.imshow(costs, cmap="YlGn_r")
    row, column = np.nonzero(z)
    axis.scatter(column, row, color="crimson", s=40)
    axis.set_xticks([])
    axis.set_yticks([])


def _draw_tree(axis, vertices: int, z: np.ndarray) -> None:
    angle = np.linspace(0, 2 * np.pi, vertices, endpoint=False)
    x, y = np.cos(angle), np.sin(angle)
    for chosen, i, j in zip(z == 1, *np.triu_indices(vertices, 1), strict=True):
        style = {"color": "crimson", "linewidth": 2.5} if chosen else {"color": "lightgrey"}
        axis.plot(x[[i, j]], y[[i, j]], zorder=2 if chosen else 1, **style)
    axis.scatter(x, y, color="black", zorder=3)
    axis.set_aspect("equal")
    axis.axis("off")


def _draw_choice(axis, scores: np.ndarray, z: np.ndarray) -> None:
    width = 1.0 if len(z) > 50 else 0.8
    axis.bar(np.arange(len(z)), scores, color=np.where(z == 1, "crimson", "lightgrey"), width=width)


def draw(batch: list[Structure], path: Path) -> None:
    """One instance of each structure with its solution."""
    from aimle.program.report import figures

    figure, axes = figures.subplots(1, len(batch), figsize=(4 * len(batch), 3.6))
    for axis, structure in zip(axes, batch, strict=True):
        scores = structure.scores[0].numpy()
        z = aimle.solve(structure.solver, structure.scores[:1])[0].numpy()
        if isinstance(structure.solver, aimle.GridPath):
            _draw_path(axis, scores, z)
        elif isinstance(structure.solver, aimle.SpanningTree):
            _draw_tree(axis, structure.solver.n, z)
        else:
            _draw_choice(axis, scores, z)
        axis.set_title(structure.name)
    figures.save(figure, path, dpi=110)
    figures.plt.close(figure)


def print_table(batch: list[Structure]) -> None:
    """Time per solve next to the peer's, after checking that both agree."""
    print(f"{'structure':22}{'aimle':>13}   {'other':10}{'':>13}   ratio")
    for structure in batch:
        ours, theirs = compare(structure)
        print(
            f"{structure.name:22}{ours * 1e6:10.3f} µs   {structure.peer_name:10}"
            f"{theirs * 1e6:10.3f} µs  {theirs / ours:,.0f}x",
            flush=True,
        )
