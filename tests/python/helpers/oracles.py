"""The same problems solved by NumPy, SciPy and NetworkX, one instance at a time."""

import itertools

import networkx as nx
import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linear_sum_assignment, milp
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra


def argmax(scores: np.ndarray) -> np.ndarray:
    z = np.zeros_like(scores)
    z[np.argmax(scores)] = 1
    return z


def topk(scores: np.ndarray, k: int, mask: np.ndarray | None = None) -> np.ndarray:
    order = np.argsort(-scores, kind="stable")
    if mask is not None:
        order = order[mask[order]]
    z = np.zeros_like(scores)
    z[order[:k]] = 1
    return z


def edges(n: int) -> list[tuple[int, int]]:
    """The undirected order: (0,1), (0,2), ..., (1,2), ..."""
    return [(i, j) for i in range(n) for j in range(i + 1, n)]


def arcs(n: int) -> list[tuple[int, int]]:
    """The directed order as (receiver, sender), receiver-major."""
    return [(i, j) for i in range(n) for j in range(n) if i != j]


def spanning_tree(scores: np.ndarray, n: int, mask: np.ndarray | None = None) -> np.ndarray:
    """Undirected scores; weights must differ."""
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    for index, (i, j) in enumerate(edges(n)):
        if mask is None or mask[index]:
            graph.add_edge(i, j, weight=scores[index], index=index)
    z = np.zeros_like(scores)
    for _, _, edge in nx.maximum_spanning_edges(graph, data=True):
        z[edge["index"]] = 1
    return z


def directed_spanning_tree(scores: np.ndarray, n: int) -> np.ndarray:
    position = {arc: index for index, arc in enumerate(arcs(n))}
    weights = np.array([scores[position[i, j]] + scores[position[j, i]] for i, j in edges(n)])
    z = np.zeros_like(scores)
    for (i, j), chosen in zip(edges(n), spanning_tree(weights, n), strict=True):
        z[position[i, j]] = z[position[j, i]] = chosen
    return z


def grid_path(
    costs: np.ndarray,
    neighbourhood: int = 8,
    source: tuple[int, int] = (0, 0),
    target: tuple[int, int] = (-1, -1),
    mask: np.ndarray | None = None,
) -> np.ndarray:
    """Positive costs, and no two paths of one cost."""
    height, width = costs.shape
    steps = [(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if (r, c) != (0, 0)]
    if neighbourhood == 4:
        steps = [(r, c) for r, c in steps if r == 0 or c == 0]
    allowed = np.ones_like(costs, dtype=bool) if mask is None else mask
    tails, heads, weights = [], [], []
    for (r, c), step in ((cell, step) for cell in np.ndindex(costs.shape) for step in steps):
        to = (r + step[0], c + step[1])
        inside = 0 <= to[0] < height and 0 <= to[1] < width
        if inside and allowed[r, c] and allowed[to]:
            tails.append(r * width + c)
            heads.append(to[0] * width + to[1])
            weights.append(costs[to])
    graph = coo_array((weights, (tails, heads)), shape=(costs.size, costs.size)).tocsr()
    first = (source[0] % height) * width + source[1] % width
    cell = (target[0] % height) * width + target[1] % width
    _, before = dijkstra(graph, indices=first, return_predecessors=True)
    z = np.zeros(costs.size, dtype=costs.dtype)
    while cell >= 0:
        z[cell] = 1
        cell = before[cell]
    return z.reshape(costs.shape)


MOVES = ((1, 1), (1, 0), (0, 1))  # diagonal, down, right
ALLOWED_MOVES = {"all": (0, 1, 2), "straight": (1, 2), "diagonal": (0, 1)}


def lattice(
    scores: np.ndarray, moves: str = "all", size: tuple[int, int] | None = None
) -> np.ndarray:
    """Scores of cells [T, U] or of moves [T, U, 3], no two paths having the same. size: of the part
    that is unmasked."""
    height, width = size or scores.shape[:2]
    graph = nx.DiGraph()
    graph.add_node((0, 0))
    for t, u in np.ndindex(height, width):
        for move in ALLOWED_MOVES[moves]:
            before = (t - MOVES[move][0], u - MOVES[move][1])
            if min(before) >= 0:
                score = scores[t, u, move] if scores.ndim == 3 else scores[t, u]
                graph.add_edge(before, (t, u), weight=-score, move=move)
    path = nx.bellman_ford_path(graph, (0, 0), (height - 1, width - 1))
    z = np.zeros_like(scores)
    if scores.ndim == 2:
        z[tuple(zip(*path, strict=True))] = 1
    else:
        for before, cell in itertools.pairwise(path):
            z[(*cell, graph.edges[before, cell]["move"])] = 1
    return z


def path_cost(costs: np.ndarray, z: np.ndarray) -> float:
    return float((costs.astype(np.float64) * z).sum())


def knapsack(values: np.ndarray, weights: list[int], capacity: int) -> np.ndarray:
    """By SciPy's solver of mixed integer programmes."""
    found = milp(
        -np.asarray(values, dtype=np.float64),
        constraints=LinearConstraint(np.array([weights]), ub=capacity),
        integrality=np.ones(len(weights)),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    return found.x.round()


def chain(scores: np.ndarray) -> np.ndarray:
    """The best path through the positions by NetworkX; no two sequences of one score."""
    steps, labels, _ = scores.shape
    graph = nx.DiGraph()
    for (t, i, j), score in np.ndenumerate(scores):
        graph.add_edge((t, i), (t + 1, j), weight=-score)
    for i in range(labels):
        graph.add_edge("source", (0, i), weight=0.0)
        graph.add_edge((steps, i), "target", weight=0.0)
    path = nx.bellman_ford_path(graph, "source", "target")[1:-1]
    z = np.zeros_like(scores)
    for (t, i), (_, j) in itertools.pairwise(path):
        z[t, i, j] = 1
    return z


def assignment(scores: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """ValueError where there is none; no two of the best may be equal."""
    allowed = scores if mask is None else np.where(mask, scores, -np.inf)
    z = np.zeros_like(scores)
    z[linear_sum_assignment(allowed, maximize=True)] = 1
    return z


def arborescence(
    scores: np.ndarray, mask: np.ndarray | None = None, single_root: bool = False
) -> np.ndarray:
    """networkx.NetworkXException where there is none; no two of the best may be equal."""
    n = len(scores)
    penalty = 1e3 * single_root  # for every root
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n + 1))
    for h, d in np.ndindex(n, n):
        if mask is None or mask[h, d]:
            weight = float(scores[h, d]) - (penalty if h == d else 0.0)
            graph.add_edge(n if h == d else h, d, weight=weight)
    z = np.zeros_like(scores)
    for h, d in nx.maximum_spanning_arborescence(graph).edges:
        z[d if h == n else h, d] = 1
    if single_root and np.trace(z) != 1:
        raise nx.NetworkXException("more than one root")
    return z


def grid_graph(height: int, width: int, steps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Edges (tail, head) between the cells of a grid, in raster order of the tails."""
    return [
        (r * width + c, (r + down) * width + c + right)
        for r in range(height)
        for c in range(width)
        for down, right in steps
        if 0 <= r + down < height and 0 <= c + right < width
    ]


KING = [(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if (r, c) != (0, 0)]


def graph_path(
    costs: np.ndarray, edges: list[tuple[int, int]], source: int, target: int
) -> np.ndarray:
    """Positive costs, no parallel edges, and no two paths of one cost."""
    index = {edge: j for j, edge in enumerate(edges)}
    n = max(map(max, edges)) + 1
    graph = coo_array((costs, np.array(edges).T), shape=(n, n)).tocsr()
    _, before = dijkstra(graph, indices=source, return_predecessors=True)
    z = np.zeros(costs.size, dtype=costs.dtype)
    while target != source:
        z[index[int(before[target]), target]] = 1
        target = int(before[target])
    return z


def dag_path(
    scores: np.ndarray, edges: list[tuple[int, int]], source: int, target: int
) -> np.ndarray:
    """Any scores, no parallel edges, and no two paths of one score."""
    graph = nx.DiGraph()
    for j, (tail, head) in enumerate(edges):
        graph.add_edge(tail, head, cost=-scores[j], index=j)
    path = nx.bellman_ford_path(graph, source, target, weight="cost")
    z = np.zeros_like(scores)
    for step in itertools.pairwise(path):
        z[graph.edges[step]["index"]] = 1
    return z
