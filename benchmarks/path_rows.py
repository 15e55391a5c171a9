"""Paths over graphs, chains and lattices, compared with common alternatives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from comparison import Row

import aimle

# ---- paths over graphs ---------------------------------------------------------------------------


def neighbours(size: int) -> tuple[np.ndarray, np.ndarray]:
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


def graph_rows() -> list[Row]:
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    count, size = 70, 30
    vertices = size * size
    tails, heads = neighbours(size)
    generator = torch.Generator().manual_seed(size)
    costs = torch.rand(count, len(tails), generator=generator) + 0.1
    solver = aimle.GraphPath(np.stack([tails, heads], 1), 0, vertices - 1)
    flat = costs.double().numpy()
    # SciPy's graphs are rebuilt for new costs, as a layer would have to.
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
    """The best sequences step by step, vectorised over the batch and the labels."""
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
        print("torch_struct is not installed: its rows are left out")
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
    """Plain dynamic time warping: the cells of the best path."""
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
    """The same over a batch, one anti-diagonal at a time: the best paths, or the marginals, are the
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
