"""Assignments, arborescences, switches and knapsacks, compared with common alternatives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import plain_layer
import torch
from comparison import Row, gradient_of, training_row

import aimle

# ---- assignments ---------------------------------------------------------------------------------


def _assignment_rows(count: int, n: int, m: int, aim: float) -> list[Row]:
    from scipy.optimize import linear_sum_assignment

    scores = torch.randn(count, n, m, generator=torch.Generator().manual_seed(n))
    matrices = scores.numpy()

    def ours() -> torch.Tensor:
        return aimle.solve(aimle.Assignment(), scores)

    def theirs() -> list:
        return [linear_sum_assignment(matrix, maximize=True) for matrix in matrices]

    def by_scipy(x: torch.Tensor) -> torch.Tensor:
        z = np.zeros(tuple(x.shape), dtype=x.numpy().dtype)
        for row, matrix in zip(z, x.numpy(), strict=True):
            row[linear_sum_assignment(matrix, maximize=True)] = 1
        return torch.from_numpy(z)

    def check() -> None:
        for z, (rows, columns) in zip(ours(), theirs(), strict=True):
            assert (z[rows, columns] == 1).all()
            assert z.sum() == len(rows)

    name = f"{count} assignments of {n} x {m}"
    solve = Row(name, "SciPy in a loop", ours, theirs, check, aim)
    return [
        solve,
        training_row(name, "the same on SciPy", aimle.Assignment(), by_scipy, scores, aim),
    ]


def assignment_rows() -> list[Row]:
    return _assignment_rows(256, 16, 16, 10) + _assignment_rows(64, 64, 64, 5)


# ---- arborescences -------------------------------------------------------------------------------


def _arborescence_rows(count: int, vertices: int, aim: float) -> list[Row]:
    import networkx as nx

    scores = torch.randn(count, vertices, vertices, generator=torch.Generator().manual_seed(1))

    def graph_of(matrix: np.ndarray) -> nx.DiGraph:
        graph = nx.DiGraph()
        for h, d in np.ndindex(matrix.shape):
            graph.add_edge("root" if h == d else h, d, weight=matrix[h, d])
        return graph

    graphs = [graph_of(matrix) for matrix in scores.double().numpy()]

    def ours() -> torch.Tensor:
        return aimle.solve(aimle.Arborescence(), scores)

    def theirs() -> list:
        return [nx.maximum_spanning_arborescence(graph) for graph in graphs]

    def by_networkx(x: torch.Tensor) -> torch.Tensor:
        z = torch.zeros_like(x)
        for row, matrix in zip(z, x.double().numpy(), strict=True):
            for h, d in nx.maximum_spanning_arborescence(graph_of(matrix)).edges:
                row[d if h == "root" else h, d] = 1
        return z

    def check() -> None:
        mine = (scores.double() * ours()).sum((-1, -2)).numpy()
        weights = [tree.size("weight") for tree in theirs()]
        np.testing.assert_allclose(mine, weights, rtol=1e-9)

    name = f"{count} arborescences of {vertices}"
    step = training_row(
        name, "the same on NetworkX", aimle.Arborescence(), by_networkx, scores, aim
    )
    return [Row(name, "NetworkX in a loop", ours, theirs, check, aim), step]


def arborescence_rows() -> list[Row]:
    return _arborescence_rows(4, 20, 100)


# ---- independent entries -------------------------------------------------------------------------


def bernoulli_rows() -> list[Row]:
    scores = torch.randn(20_000, 50, generator=torch.Generator().manual_seed(0))

    def ours() -> torch.Tensor:
        return aimle.solve(aimle.Bernoulli(), scores)

    def theirs() -> torch.Tensor:
        return (scores > 0).to(scores.dtype)

    check = lambda: torch.testing.assert_close(ours(), theirs())  # noqa: E731
    name = "on or off [20000, 50]"
    return [Row(name, "torch: (x > 0)", ours, theirs, check, 1), _bernoulli_step(name, scores)]


def _bernoulli_step(name: str, scores: torch.Tensor) -> Row:
    key, alpha = torch.tensor([3, 4]), 0.3
    noise, target = aimle.Logistic(), aimle.AdaptiveTarget.paper(alpha)
    layer = aimle.AIMLE(aimle.Bernoulli(), noise=noise, target=target)
    logit = torch.distributions.SigmoidTransform().inv

    def plain(draw: Callable[[torch.Size], torch.Tensor]) -> plain_layer.PlainAIMLE:
        return plain_layer.PlainAIMLE(lambda x: (x > 0).to(x.dtype), draw, 1, alpha=alpha)

    fresh = plain(lambda shape: logit(torch.rand(shape).clamp_min(1e-7)))
    dy = torch.randn(len(scores), 1, 50, generator=torch.Generator().manual_seed(7))

    def check() -> None:
        known = lambda _: aimle.sample_noise(noise, scores.shape, key, nb_samples=1)  # noqa: E731
        ours = gradient_of(layer, scores, dy, key=key)
        theirs = gradient_of(plain(known), scores, dy)
        # The plain layer rounds lambda differently, which occasionally changes a solution.
        assert torch.isclose(ours, theirs, rtol=1e-3, atol=1e-6).double().mean() > 0.999

    return Row(
        f"{name}, backward",
        "plain torch",
        lambda: gradient_of(layer, scores, dy),
        lambda: gradient_of(fresh, scores, dy),
        check,
        1,
    )


# ---- knapsacks -----------------------------------------------------------------------------------


def _pack_by_lines(values: np.ndarray, weights: np.ndarray, capacity: int) -> np.ndarray:
    """Dynamic programming in plain NumPy, one line of capacities at a time."""
    best = np.zeros(capacity + 1)
    taken = np.zeros((len(values), capacity + 1), dtype=bool)
    for j, (value, weight) in enumerate(zip(values, weights, strict=True)):
        taken[j, weight:] = best[: capacity + 1 - weight] + value > best[weight:]
        best[weight:] = np.maximum(best[weight:], best[: capacity + 1 - weight] + value)
    z, left = np.zeros(len(values)), capacity
    for j in reversed(range(len(values))):
        if taken[j, left]:
            z[j], left = 1.0, left - weights[j]
    return z


def _knapsack_rows(count: int, items: int, capacity: int) -> list[Row]:
    generator = np.random.default_rng(items)
    weights = generator.integers(1, max(2, 4 * capacity // items), items)
    # Whole numbers, as OR-Tools requires.
    values = generator.integers(1, 1000, (count, items))
    scores, solver = torch.tensor(values, dtype=torch.float32), aimle.Knapsack(weights, capacity)
    plain, plain_weights = values.tolist(), weights.tolist()

    def worth(z: torch.Tensor) -> torch.Tensor:
        return (scores.double() * z).sum(-1)

    def by_lines() -> torch.Tensor:
        return torch.tensor(np.stack([_pack_by_lines(row, weights, capacity) for row in values]))

    def check(theirs: Callable[[], torch.Tensor]) -> Callable[[], None]:
        return lambda: torch.testing.assert_close(worth(solver(scores)), worth(theirs()))

    name = f"{count} knapsacks of {items}, {capacity}"
    rows = [Row(name, "NumPy in a loop", lambda: solver(scores), by_lines, check(by_lines), 20)]
    try:
        from ortools.algorithms.python import knapsack_solver
    except ImportError:
        print("ortools is not installed: its rows are left out")
        return rows

    def packed(rows: list[list[int]]) -> torch.Tensor:
        kind = knapsack_solver.SolverType.KNAPSACK_MULTIDIMENSION_BRANCH_AND_BOUND_SOLVER
        z = []
        for row in rows:
            problem = knapsack_solver.KnapsackSolver(kind, "")
            problem.init(row, [plain_weights], [capacity])
            problem.solve()
            z.append([float(problem.best_solution_contains(j)) for j in range(items)])
        return torch.tensor(z, dtype=torch.float64)

    def by_ortools() -> torch.Tensor:
        return packed(plain)

    def in_layer(x: torch.Tensor) -> torch.Tensor:
        # Whole numbers close to the scores; items that are worth nothing are left out.
        whole = (x.clamp_min(0).double() * 2**40).round().long()
        return packed(whole.tolist()).to(x) * (x > 0)

    ours = lambda: solver(scores)  # noqa: E731
    solve = Row(name, "OR-Tools in a loop", ours, by_ortools, check(by_ortools), 20)
    theta = scores / 1000  # of order one, as the default noise expects
    return [*rows, solve, training_row(name, "the same on OR-Tools", solver, in_layer, theta, 20)]


def knapsack_rows() -> list[Row]:
    sizes = [(256, 16, 60), (64, 200, 1000), (256, 16, 2000), (64, 200, 50_000)]
    return [row for size in sizes for row in _knapsack_rows(*size)]
