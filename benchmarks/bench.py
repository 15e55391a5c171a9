"""Solvers and noise against what one would write instead: `make bench`.

Every row checks the result first, then times both sides in turns in the same run and prints the
ratio of the medians beside the ratio aimed for. This is no test: no row fails for being slow.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
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
    """Median seconds of both sides, measured in turns so that a noisy machine hits both alike."""
    row.check()
    mine, other = _repeats(row.ours, 0.03), _repeats(row.theirs, 0.03)
    times = [(_elapsed(row.ours, mine), _elapsed(row.theirs, other)) for _ in range(rounds)]
    return statistics.median(t[0] for t in times), statistics.median(t[1] for t in times)


# ---- noise ---------------------------------------------------------------------------------------


def _same_moments(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    """Means of two samples agree within six standard errors, deviations within 5 %."""
    error = (theirs.var() / theirs.numel() + ours.var() / ours.numel()).sqrt()
    assert (ours.mean() - theirs.mean()).abs() < 6 * error
    assert (ours.std() / theirs.std() - 1).abs() < 0.05


def _direct_sum_of_gamma(k: int, iterations: int, shape: tuple[int, ...]) -> torch.Tensor:
    total = torch.zeros(shape)
    for i in range(1, iterations + 1):
        total += torch.distributions.Gamma(1.0 / k, i / k).sample(shape)
    return (total - np.log(iterations)) / k


def _noise_row(noise: object, peer: Callable[[tuple[int, ...]], torch.Tensor], aim: float) -> Row:
    shape, key = (2000, 20), torch.tensor([1, 2])

    def ours() -> torch.Tensor:
        return aimle.sample_noise(noise, shape, key)

    def theirs() -> torch.Tensor:
        return peer(shape)

    name = f"{noise} {list(shape)}"
    check = lambda: _same_moments(ours(), theirs())  # noqa: E731
    return Row(name, "torch.distributions", ours, theirs, check, aim)


def noise_rows() -> list[Row]:
    zero, one = torch.tensor(0.0), torch.tensor(1.0)
    logit = torch.distributions.transforms.SigmoidTransform().inv
    logistic = torch.distributions.TransformedDistribution(
        torch.distributions.Uniform(zero, one), [logit]
    )
    return [
        _noise_row(aimle.Gumbel(), torch.distributions.Gumbel(zero, one).sample, 1),
        _noise_row(aimle.Normal(), torch.distributions.Normal(zero, one).sample, 1),
        _noise_row(aimle.Logistic(), logistic.sample, 1),
        _noise_row(aimle.SumOfGamma(10), lambda shape: _direct_sum_of_gamma(10, 10, shape), 300),
    ]


# ---- top-k ---------------------------------------------------------------------------------------


def _topk_row(rows: int, n: int, k: int, aim: float) -> Row:
    scores = torch.randn(rows, n, generator=torch.Generator().manual_seed(n))

    def ours() -> torch.Tensor:
        return aimle.solve(aimle.TopK(k), scores)

    def theirs() -> torch.Tensor:
        return torch.zeros_like(scores).scatter_(1, scores.topk(k).indices, 1.0)

    check = lambda: torch.testing.assert_close(ours(), theirs(), rtol=0, atol=0)  # noqa: E731
    return Row(f"{k} of {n:,}, {rows:,} rows", "torch.topk + scatter", ours, theirs, check, aim)


def topk_rows() -> list[Row]:
    return [
        _topk_row(20_000, 20, 10, 5),
        _topk_row(2_000, 350, 10, 5),
        _topk_row(1, 1_000_000, 10, 3),
    ]


# ---- spanning trees ------------------------------------------------------------------------------


def _tree_row(count: int, vertices: int, aim: float) -> Row:
    from scipy.sparse.csgraph import minimum_spanning_tree

    upper = np.triu_indices(vertices, 1)
    scores = torch.rand(count, len(upper[0]), generator=torch.Generator().manual_seed(vertices))
    weights = np.zeros((count, vertices, vertices))
    weights[:, upper[0], upper[1]] = 2.0 - scores.double().numpy()

    def ours() -> torch.Tensor:
        return aimle.solve(aimle.SpanningTree(vertices), scores)

    def theirs() -> list:
        return [minimum_spanning_tree(w) for w in weights]

    def check() -> None:
        mine = ((2.0 - scores.double()) * ours()).sum(1)
        np.testing.assert_allclose(mine.numpy(), [tree.sum() for tree in theirs()], rtol=1e-6)

    return Row(f"{count} trees of {vertices} vertices", "SciPy in a loop", ours, theirs, check, aim)


def tree_rows() -> list[Row]:
    return [_tree_row(128, 10, 1000), _tree_row(128, 30, 100)]


# ---- grid paths ----------------------------------------------------------------------------------


def _neighbours(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Directed edges (from, to) of the 8-neighbour grid, as raster indices."""
    cell = np.arange(size * size).reshape(size, size)
    pairs = []
    for di in (-1, 0, 1):
        for dj in (-1, 0, 1):
            if (di, dj) != (0, 0):
                rows = slice(max(0, -di), size - max(0, di))
                columns = slice(max(0, -dj), size - max(0, dj))
                source = cell[rows, columns].ravel()
                pairs.append((source, source + di * size + dj))
    return np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs])


def _grid_rows(count: int, size: int) -> list[Row]:
    import networkx as nx
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    cells = size * size
    costs = torch.rand(count, size, size, generator=torch.Generator().manual_seed(size)) + 0.1
    flat = costs.flatten(1).double().numpy()
    source, target = _neighbours(size)
    graphs = [csr_matrix((cost[target], (source, target)), shape=(cells, cells)) for cost in flat]
    networks = [nx.from_scipy_sparse_array(graph, create_using=nx.DiGraph) for graph in graphs]

    def ours() -> torch.Tensor:
        return aimle.solve(aimle.GridPath(), costs)

    def scipy() -> list[float]:
        return [dijkstra(graph, indices=0)[-1] for graph in graphs]

    def networkx() -> list[float]:
        return [nx.dijkstra_path_length(network, 0, cells - 1) for network in networks]

    def check(theirs: Callable[[], list[float]]) -> None:
        mine = (costs.double() * ours()).flatten(1).sum(1).numpy()
        np.testing.assert_allclose(mine - flat[:, 0], theirs(), rtol=1e-5)

    name = f"{count} paths on {size} x {size}"
    return [
        Row(name, "NetworkX in a loop", ours, networkx, lambda: check(networkx), 300),
        Row(name, "SciPy in a loop", ours, scipy, lambda: check(scipy), 10),
    ]


def grid_rows() -> list[Row]:
    return _grid_rows(70, 12) + _grid_rows(20, 30)


# ---- paths over graphs ---------------------------------------------------------------------------


def graph_rows() -> list[Row]:
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    count, size = 70, 30
    vertices = size * size
    tails, heads = _neighbours(size)
    generator = torch.Generator().manual_seed(size)
    costs = torch.rand(count, len(tails), generator=generator) + 0.1
    solver = aimle.GraphPath(np.stack([tails, heads], 1), 0, vertices - 1)
    flat = costs.double().numpy()
    # SciPy's graphs are made anew for new costs, as a layer would have to.
    places = csr_matrix((np.arange(1, len(tails) + 1), (tails, heads)), shape=(vertices, vertices))
    order = places.data - 1

    def graphs(rows: np.ndarray) -> list[csr_matrix]:
        shape = (vertices, vertices)
        return [
            csr_matrix((row[order], places.indices, places.indptr), shape=shape) for row in rows
        ]

    ready = graphs(flat)

    def ours() -> torch.Tensor:
        return solver(costs)

    def scipy() -> list[float]:
        return [dijkstra(graph, indices=0)[-1] for graph in ready]

    def paths(rows: torch.Tensor) -> torch.Tensor:
        """Solutions by SciPy."""
        ends = zip(tails.tolist(), heads.tolist(), strict=True)
        number = {edge: j for j, edge in enumerate(ends)}
        z = torch.zeros_like(rows)
        for i, graph in enumerate(graphs(rows.double().numpy())):
            _, before = dijkstra(graph, indices=0, return_predecessors=True)
            at = vertices - 1
            while at != 0:
                z[i, number[int(before[at]), at]] = 1
                at = int(before[at])
        return z

    def step(layer: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        leaf = costs.detach().requires_grad_()
        layer(leaf).square().sum().backward()
        return leaf.grad

    def check() -> None:
        mine = (costs.double() * ours()).sum(1).numpy()
        np.testing.assert_allclose(mine, scipy(), rtol=1e-5)

    dbb, theirs = aimle.DBB(solver, 0.5), aimle.DBB(paths, 0.5, sense="min")
    check_step = lambda: torch.testing.assert_close(step(dbb), step(theirs))  # noqa: E731
    name = f"{count} paths, graph of {size} x {size}"
    return [
        Row(name, "SciPy in a loop", ours, scipy, check, 10),
        Row(
            f"{name}, DBB step",
            "DBB on SciPy",
            lambda: step(dbb),
            lambda: step(theirs),
            check_step,
            10,
        ),
    ]


# ---- chains --------------------------------------------------------------------------------------


def _viterbi(scores: torch.Tensor) -> torch.Tensor:
    """The best sequences step by step, the batch and the labels as vectors."""
    best, before = scores.new_zeros(scores.shape[0], scores.shape[2]), []
    for t in range(scores.shape[1]):
        best, from_ = (best.unsqueeze(2) + scores[:, t]).max(1)
        before.append(from_)
    z, rows, label = torch.zeros_like(scores), torch.arange(len(scores)), best.argmax(1)
    for t in reversed(range(scores.shape[1])):
        previous = before[t][rows, label]
        z[rows, t, previous, label] = 1.0
        label = previous
    return z


def _marginals(scores: torch.Tensor) -> torch.Tensor:
    """The gradient of the forward algorithm."""
    scores = scores.detach().requires_grad_()
    sums = scores.new_zeros(scores.shape[0], scores.shape[2])
    for t in range(scores.shape[1]):
        sums = torch.logsumexp(sums.unsqueeze(2) + scores[:, t], 1)
    return torch.autograd.grad(sums.logsumexp(1).sum(), scores)[0]


def _chain_step(
    layer: Callable[[torch.Tensor], torch.Tensor], scores: torch.Tensor
) -> torch.Tensor:
    leaf = scores.detach().requires_grad_()
    layer(leaf).square().sum().backward()
    return leaf.grad


def chain_rows() -> list[Row]:
    count, length, labels = 128, 50, 20
    generator = torch.Generator().manual_seed(length)
    scores = torch.randn(count, length - 1, labels, labels, generator=generator)
    chain, name = aimle.Chain(), f"[{count}, {length}, {labels}]"

    def row(what: str, instead: str, ours: Callable, theirs: Callable, aim: float) -> Row:
        check = lambda: torch.testing.assert_close(  # noqa: E731
            ours(scores), theirs(scores), rtol=1e-4, atol=1e-5
        )
        return Row(
            f"chains {name}, {what}",
            instead,
            lambda: ours(scores),
            lambda: theirs(scores),
            check,
            aim,
        )

    best = lambda x: chain(x)  # noqa: E731
    marginals = lambda x: aimle.exact.marginals(chain, x)  # noqa: E731
    own = aimle.DBB(_viterbi, 10.0)
    rows = [
        row("best", "plain torch", best, _viterbi, 2),
        row("marginals", "plain torch", marginals, _marginals, 3),
        row(
            "DBB step",
            "DBB on plain torch",
            lambda x: _chain_step(aimle.DBB(chain, 10.0), x),
            lambda x: _chain_step(own, x),
            2,
        ),
    ]
    try:
        import torch_struct
    except ImportError:
        print("no torch_struct here: its rows are left out")
        return rows
    theirs = lambda x: torch_struct.LinearChainCRF(x)  # noqa: E731
    # Its edges run from the column to the row.
    turned = lambda x: x.transpose(-1, -2)  # noqa: E731
    return [
        *rows,
        row("best", "torch-struct", best, lambda x: turned(theirs(turned(x)).argmax), 10),
        row(
            "marginals",
            "torch-struct",
            marginals,
            lambda x: turned(theirs(turned(x)).marginals),
            10,
        ),
    ]


# ---- lattices ------------------------------------------------------------------------------------


def _warp(scores: list[list[float]]) -> list[tuple[int, int]]:
    """Dynamic time warping as one writes it down: the cells of the best path."""
    best: dict[tuple[int, int], tuple[float, tuple[int, int] | None]] = {
        (0, 0): (scores[0][0], None)
    }
    for t, row in enumerate(scores):
        for u, score in enumerate(row):
            ways = [c for c in ((t - 1, u - 1), (t - 1, u), (t, u - 1)) if c in best]
            if ways:
                before = max(ways, key=lambda cell: best[cell][0])
                best[t, u] = (best[before][0] + score, before)
    path, cell = [], (len(scores) - 1, len(scores[0]) - 1)
    while cell is not None:
        path.append(cell)
        cell = best[cell][1]
    return path


def _by_diagonals(x: torch.Tensor, add_up: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """The same over a batch, an anti-diagonal at a time: the best paths, or the marginals, are the
    gradient of the last sum."""
    count, height, width = x.shape
    x = x.detach().requires_grad_()
    wall = torch.full((count, height), -1e30)
    rows = torch.arange(height)
    columns = torch.arange(height + width - 1).unsqueeze(1) - rows
    inside = (columns >= 0) & (columns < width)
    skewed = torch.where(inside, x[:, rows, columns.clamp(0, width - 1)], -1e30)
    two_before, before = wall, torch.cat([skewed[:, 0, :1], wall[:, 1:]], 1)
    shifted = lambda sums: torch.cat([wall[:, :1], sums[:, :-1]], 1)  # noqa: E731
    for scores in skewed.unbind(1)[1:]:
        ways = torch.stack([shifted(two_before), shifted(before), before])
        two_before, before = before, add_up(ways) + scores
    return torch.autograd.grad(before[:, -1].sum(), x)[0]


def _best_by_diagonals(x: torch.Tensor) -> torch.Tensor:
    return _by_diagonals(x, lambda ways: ways.max(0).values)


def _lattice_map_rows(scores: torch.Tensor) -> list[Row]:
    few = scores[:16]
    plain = few.tolist()
    solver = aimle.LatticePath()

    def check_warping() -> None:
        for z, path in zip(solver(few), map(_warp, plain), strict=True):
            assert sorted(path) == [tuple(cell) for cell in z.nonzero().tolist()]

    size = f"{scores.shape[1]} x {scores.shape[2]}"
    return [
        Row(
            f"16 alignments of {size}",
            "Python loops",
            lambda: solver(few),
            lambda: [_warp(rows) for rows in plain],
            check_warping,
            1000,
        ),
        Row(
            f"{len(scores)} alignments of {size}",
            "torch by diagonals",
            lambda: solver(scores),
            lambda: _best_by_diagonals(scores),
            lambda: torch.testing.assert_close(solver(scores), _best_by_diagonals(scores)),
            20,
        ),
    ]


def _lattice_layer_row(scores: torch.Tensor) -> Row:
    target = aimle.AdaptiveTarget.constant(1.0, scale="noise")
    key = torch.tensor([3, 4])

    class ByDiagonals:
        instance_dims, fixed_size = 2, False

        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            with torch.enable_grad():
                return _best_by_diagonals(x)

    layers = [aimle.AIMLE(s, target=target) for s in (aimle.LatticePath(), ByDiagonals())]
    dy = torch.randn(len(scores), 1, *scores.shape[1:])

    def step(layer: torch.nn.Module) -> torch.Tensor:
        theta = scores.detach().requires_grad_()
        layer(theta, key=key).backward(dy)
        assert theta.grad is not None
        return theta.grad

    return Row(
        f"layer over {len(scores)} of {scores.shape[1]} x {scores.shape[2]}",
        "torch by diagonals",
        lambda: step(layers[0]),
        lambda: step(layers[1]),
        lambda: torch.testing.assert_close(step(layers[0]), step(layers[1])),
        10,
    )


def lattice_rows() -> list[Row]:
    scores = torch.randn(128, 50, 50, generator=torch.Generator().manual_seed(3))

    def ours() -> torch.Tensor:
        return aimle.exact.marginals(aimle.LatticePath(), scores)

    def theirs() -> torch.Tensor:
        return _by_diagonals(scores, lambda ways: ways.logsumexp(0))

    def check() -> None:
        torch.testing.assert_close(ours(), theirs(), rtol=1e-3, atol=1e-4)

    marginals = Row("their marginals", "torch by diagonals", ours, theirs, check, 10)
    return [*_lattice_map_rows(scores), marginals, _lattice_layer_row(scores)]


# ---- assignments ---------------------------------------------------------------------------------


def _assignment_rows(count: int, n: int, m: int, aim: float) -> list[Row]:
    from scipy.optimize import linear_sum_assignment

    scores = torch.randn(count, n, m, generator=torch.Generator().manual_seed(n))
    matrices = scores.numpy()

    def ours() -> torch.Tensor:
        return aimle.solve(aimle.Assignment(), scores)

    def theirs() -> list:
        return [linear_sum_assignment(matrix, maximize=True) for matrix in matrices]

    def check() -> None:
        for z, (rows, columns) in zip(ours(), theirs(), strict=True):
            assert (z[rows, columns] == 1).all()
            assert z.sum() == len(rows)

    layer = aimle.AIMLE(aimle.Assignment())
    theta, dy = scores.clone().requires_grad_(), torch.randn(count, 1, n, m)

    def training_step() -> None:
        theta.grad = None
        layer(theta).backward(dy)

    def three_solves() -> list:  # what a layer of a Python function solves in a training step
        return theirs() + theirs() + theirs()

    name = f"{count} assignments of {n} x {m}"
    return [
        Row(name, "SciPy in a loop", ours, theirs, check, aim),
        Row(f"{name}, backward", "SciPy, 3 solves", training_step, three_solves, check, aim),
    ]


def assignment_rows() -> list[Row]:
    return _assignment_rows(256, 16, 16, 10) + _assignment_rows(64, 64, 64, 5)


# ---- arborescences -------------------------------------------------------------------------------


def _arborescence_row(count: int, vertices: int, aim: float) -> Row:
    import networkx as nx

    scores = torch.randn(count, vertices, vertices, generator=torch.Generator().manual_seed(1))
    graphs = []
    for matrix in scores.double().numpy():
        graph = nx.DiGraph()
        for h, d in np.ndindex(matrix.shape):
            graph.add_edge("root" if h == d else h, d, weight=matrix[h, d])
        graphs.append(graph)

    def ours() -> torch.Tensor:
        return aimle.solve(aimle.Arborescence(), scores)

    def theirs() -> list:
        return [nx.maximum_spanning_arborescence(graph) for graph in graphs]

    def check() -> None:
        mine = (scores.double() * ours()).sum((-1, -2)).numpy()
        weights = [tree.size("weight") for tree in theirs()]
        np.testing.assert_allclose(mine, weights, rtol=1e-9)

    name = f"{count} arborescences of {vertices}"
    return Row(name, "NetworkX in a loop", ours, theirs, check, aim)


def arborescence_rows() -> list[Row]:
    return [_arborescence_row(4, 20, 100)]


# ---- entries by themselves -----------------------------------------------------------------------


def bernoulli_rows() -> list[Row]:
    scores = torch.randn(20_000, 50, generator=torch.Generator().manual_seed(0))

    def ours() -> torch.Tensor:
        return aimle.solve(aimle.Bernoulli(), scores)

    def theirs() -> torch.Tensor:
        return (scores > 0).to(scores.dtype)

    check = lambda: torch.testing.assert_close(ours(), theirs())  # noqa: E731
    return [Row("on or off, 20,000 rows of 50", "torch: (x > 0)", ours, theirs, check, 1)]


# ---- knapsacks -----------------------------------------------------------------------------------


def _pack_by_lines(values: np.ndarray, weights: np.ndarray, capacity: int) -> np.ndarray:
    """The dynamic programme as one writes it in NumPy, a line of capacities at a time."""
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
    # Whole numbers, as OR-Tools wants them.
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
        print("no ortools here: its rows are left out")
        return rows

    def by_ortools() -> torch.Tensor:
        kind = knapsack_solver.SolverType.KNAPSACK_MULTIDIMENSION_BRANCH_AND_BOUND_SOLVER
        z = []
        for row in plain:
            problem = knapsack_solver.KnapsackSolver(kind, "")
            problem.init(row, [plain_weights], [capacity])
            problem.solve()
            z.append([float(problem.best_solution_contains(j)) for j in range(items)])
        return torch.tensor(z, dtype=torch.float64)

    ours = lambda: solver(scores)  # noqa: E731
    return [*rows, Row(name, "OR-Tools in a loop", ours, by_ortools, check(by_ortools), 20)]


def knapsack_rows() -> list[Row]:
    return [*_knapsack_rows(256, 16, 60), *_knapsack_rows(64, 200, 1000)]


ROOMS = {
    "noise": noise_rows,
    "topk": topk_rows,
    "trees": tree_rows,
    "grids": grid_rows,
    "graphs": graph_rows,
    "chains": chain_rows,
    "lattices": lattice_rows,
    "assignments": assignment_rows,
    "arborescences": arborescence_rows,
    "bernoulli": bernoulli_rows,
    "knapsacks": knapsack_rows,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooms", nargs="*", default=list(ROOMS), help=f"of {', '.join(ROOMS)}")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    unknown = set(options.rooms) - set(ROOMS)
    if unknown:
        parser.error(f"unknown {', '.join(sorted(unknown))}; choose from {', '.join(ROOMS)}")
    torch.set_num_threads(options.threads)

    print(f"{options.threads} threads, torch {torch.__version__}; medians of alternating rounds")
    print(f"{'what':36}{'aimle':>12}   {'instead':22}{'':>12}{'ratio':>10}{'aim':>8}")
    for room in options.rooms:
        for row in ROOMS[room]():
            ours, theirs = measure(row)
            print(
                f"{row.name:36}{ours * 1e3:9.4f} ms   {row.instead:22}{theirs * 1e3:9.4f} ms"
                f"{theirs / ours:9.1f}x{row.aim:7.0f}x",
                flush=True,
            )


if __name__ == "__main__":
    main()
