"""Small structures as lists of all their solutions, in the order in which ties between them are
decided: of the best solutions a solver must return the first."""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
import oracles
from exact_cases import flips, sets, subsets, trees

import aimle

Mask = np.ndarray  # bool [n]


@dataclass(frozen=True)
class Listed:
    """A solver, the shape of an instance, and the list of its solutions [count, n].

    solutions: under a mask; only for chains and lattices, whose sizes depend on it.
    ones: how many entries all solutions have, None if it varies or depends on the mask.
    edge_of: for directed trees, the undirected edge of every entry; solutions are then those of the
        undirected tree.
    """

    solver: aimle.Solver
    instance: tuple[int, ...]
    solutions: Callable[[Mask], np.ndarray]
    ones: int | None = None
    edge_of: np.ndarray | None = None

    def best(
        self, x: np.ndarray, mask: Mask, k: int | None = None
    ) -> tuple[np.ndarray | None, bool]:
        """The solution of x [n], None if there is none or a NaN; and whether it could be another
        one after rounding (or because of +inf)."""
        if np.isnan(x[mask]).any():
            return None, False
        exact = np.where(mask, x, 0).astype(np.float64)
        if self.solver.sense == "min":
            exact = -(np.maximum(exact, 0) if self.solver.has_costs else exact)
        listed = subsets_of(len(x), k) if k is not None else self.solutions(mask)
        listed = listed[~(listed[:, ~mask | (exact == -np.inf)] > 0).any(1)]
        if len(listed) == 0:
            return None, False
        exact[exact == -np.inf] = 0
        if np.isinf(exact).any():
            return None, True
        totals = listed @ exact
        first = int(totals.argmax())
        same = ((listed == listed[first]) | (exact == 0)).all(1)
        rounding = (2e-6 if x.dtype == np.float32 else 1e-13) * np.abs(exact).sum()
        close = (totals[first] - totals < rounding) & ~same
        return listed[first].astype(np.float64), bool(close.any())


def rows(solutions: Iterable) -> np.ndarray:
    found = [np.asarray(z, dtype=np.int8).ravel() for z in solutions]
    return np.stack(found) if found else np.zeros((0, 0), np.int8)


@cache
def subsets_of(n: int, k: int) -> np.ndarray:
    return subsets(n, k).numpy().astype(np.int8)


def always(
    solver: aimle.Solver, instance: tuple[int, ...], solutions: np.ndarray, **more
) -> Listed:
    """A structure whose mask only rules out solutions."""
    return Listed(solver, instance, lambda mask: solutions, **more)


def largest_first(solutions: np.ndarray) -> np.ndarray:
    """In descending order as rows of digits."""
    return solutions[np.lexsort(-solutions.T[::-1])]


def top(n: int, k: int) -> Listed:
    return always(aimle.TopK(k), (n,), subsets_of(n, k), ones=k)


def tree(n: int, directed: bool = False) -> Listed:
    listed, edges, arcs = trees(n).numpy().astype(np.int8), oracles.edges(n), oracles.arcs(n)
    edge_of = np.array([edges.index((min(arc), max(arc))) for arc in arcs])
    solver, ones = aimle.SpanningTree(n), n - 1
    if directed:
        return always(solver, (len(arcs),), listed, ones=ones, edge_of=edge_of)
    return always(solver, (len(edges),), listed, ones=ones)


def knapsack(weights: list[int], capacity: int) -> Listed:
    listed = sets(weights, capacity).numpy().astype(np.int8)
    from_the_last = listed[np.lexsort(listed.T)]
    return always(aimle.Knapsack(weights, capacity), (len(weights),), from_the_last)


def paths(arcs: list[tuple[int, int, int]], source: int, target: int) -> list[tuple[int, list]]:
    """(length, entries from the last to the first) of all simple paths over (tail, head, entry), in
    the order of GraphPath."""
    found = []

    def extend(at: int, seen: frozenset, entries: list[int]) -> None:
        if at == target:
            found.append((len(entries), entries[::-1]))
            return
        for tail, head, entry in arcs:
            if tail == at and head not in seen:
                extend(head, seen | {head}, [*entries, entry])

    extend(source, frozenset([source]), [])
    return sorted(found)


def marked(entries: Iterable[int], n: int) -> np.ndarray:
    z = np.zeros(n, np.int8)
    z[list(entries)] = 1
    return z


def graph(cls: type, edges: list[tuple[int, int]], source: int, target: int) -> Listed:
    arcs = [(tail, head, entry) for entry, (tail, head) in enumerate(edges)]
    n = len(edges)
    listed = rows(marked(entries, n) for _, entries in paths(arcs, source, target))
    return always(cls(edges, source, target), (n,), listed)


def grid(height: int, width: int, neighbourhood: int) -> Listed:
    steps = [(r, c) for r, c in oracles.KING if neighbourhood == 8 or r == 0 or c == 0]
    # The entry of a step is the cell that it leaves, so that paths are ordered by them.
    arcs = [(a, b, a) for a, b in oracles.grid_graph(height, width, steps)]
    n = height * width
    listed = rows(marked([*cells, n - 1], n) for _, cells in paths(arcs, 0, n - 1))
    return always(aimle.GridPath(neighbourhood), (height, width), listed)


def chain(length: int, labels: int) -> Listed:
    shape = (length - 1, labels, labels)

    @cache
    def of_steps(steps: int) -> np.ndarray:
        sequences = itertools.product(range(labels), repeat=steps + 1 if steps else 0)
        listed = []
        for y in sorted(sequences, key=lambda y: y[::-1]):
            z = np.zeros(shape, np.int8)
            for t in range(steps):
                z[t, y[t], y[t + 1]] = 1
            listed.append(z)
        return rows(listed)

    def solutions(mask: Mask) -> np.ndarray:
        kept = mask.reshape(length - 1, -1).any(1).nonzero()[0]
        return of_steps(int(kept[-1]) + 1 if len(kept) else 0)

    return Listed(aimle.Chain(), shape, solutions)


def lattice(cls: type, height: int, width: int, moves: str) -> Listed:
    of_moves = cls is aimle.LatticeMoves
    shape = (height, width, 3) if of_moves else (height, width)

    @cache
    def of_size(t: int, u: int) -> np.ndarray:
        found = []

        def back(t: int, u: int, z: np.ndarray) -> None:
            if (t, u) == (0, 0):
                found.append(z)
            for move in oracles.ALLOWED_MOVES[moves]:
                down, right = oracles.MOVES[move]
                if t < down or u < right:
                    continue
                more = z.copy()
                more[(t, u, move) if of_moves else (t - down, u - right)] = 1
                back(t - down, u - right, more)

        start = np.zeros(shape, np.int8)
        if not of_moves:
            start[t, u] = 1
        back(t, u, start)
        return rows(found)

    def solutions(mask: Mask) -> np.ndarray:
        cells = mask.reshape(shape).any(-1) if of_moves else mask.reshape(shape)
        if not cells.any():
            return np.zeros((0, mask.size), np.int8)
        listed = of_size(int(cells.any(1).nonzero()[0][-1]), int(cells.any(0).nonzero()[0][-1]))
        return listed.reshape(len(listed), mask.size)

    return Listed(cls(moves), shape, solutions)


def assignment(n: int, m: int) -> Listed:
    listed = []
    for chosen in itertools.permutations(range(max(n, m)), min(n, m)):
        z = np.zeros((min(n, m), max(n, m)), np.int8)
        z[range(min(n, m)), chosen] = 1
        listed.append(z if n <= m else z.T)
    return always(aimle.Assignment(), (n, m), largest_first(rows(listed)), ones=min(n, m))


def arborescence(n: int, single_root: bool) -> Listed:
    listed = []
    for heads in itertools.product(range(n), repeat=n):
        at = list(range(n))
        for _ in range(n):
            at = [heads[v] for v in at]
        roots = {v for v in range(n) if heads[v] == v}
        if set(at) <= roots and (len(roots) == 1 or not single_root):
            z = np.zeros((n, n), np.int8)
            z[heads, range(n)] = 1
            listed.append(z)
    solver = aimle.Arborescence(single_root=single_root)
    return always(solver, (n, n), largest_first(rows(listed)), ones=n)


DAG = [(0, 1), (1, 2), (0, 2), (2, 3), (1, 3), (0, 3)]
GRAPH = [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (0, 2), (2, 3), (1, 3), (3, 3)]

STRUCTURES: dict[str, Callable[[], Listed]] = {
    "argmax": lambda: always(aimle.Argmax(), (5,), np.eye(5, dtype=np.int8), ones=1),
    "topk": lambda: top(7, 3),
    "tree": lambda: tree(4),
    "directed tree": lambda: tree(4, directed=True),
    "bernoulli": lambda: always(aimle.Bernoulli(), (5,), flips(5).numpy().astype(np.int8)),
    "knapsack": lambda: knapsack([3, 1, 4, 0, 5, 2], 7),
    "grid": lambda: grid(3, 3, 8),
    "grid of 4 neighbours": lambda: grid(3, 4, 4),
    "graph": lambda: graph(aimle.GraphPath, GRAPH, 0, 3),
    "dag": lambda: graph(aimle.DagPath, DAG, 0, 3),
    "chain": lambda: chain(4, 3),
    "lattice": lambda: lattice(aimle.LatticePath, 3, 4, "all"),
    "straight lattice": lambda: lattice(aimle.LatticePath, 3, 3, "straight"),
    "lattice of moves": lambda: lattice(aimle.LatticeMoves, 3, 3, "all"),
    "diagonal moves": lambda: lattice(aimle.LatticeMoves, 4, 3, "diagonal"),
    "assignment": lambda: assignment(3, 3),
    "tall assignment": lambda: assignment(4, 2),
    "arborescence": lambda: arborescence(3, False),
    "arborescence of one root": lambda: arborescence(3, True),
}
