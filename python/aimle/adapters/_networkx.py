"""NetworkX algorithms over the edges of a graph."""

import itertools
import reprlib
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from aimle.adapters._shared import OneAtATime, adapted, finite
from aimle.black_box import PerInstance
from aimle.settings.checks import check_choice, check_graph, check_type


class _OverEdges:
    """An algorithm over a graph whose edge weights are the scores."""

    def __init__(self, graph: Any, algorithm: Any, weight: str, returns: str) -> None:
        self._graph, self._algorithm = graph, algorithm
        self._weight, self._returns = weight, returns
        edges = list(graph.edges(keys=True) if graph.is_multigraph() else graph.edges)
        self._edges, self._number = edges, {edge: i for i, edge in enumerate(edges)}
        if not graph.is_directed():
            self._number |= {(v, u, *key): i for i, (u, v, *key) in enumerate(edges)}

    def __call__(self, scores: NDArray) -> NDArray:
        if len(scores) != len(self._edges):
            raise ValueError(
                f"expected a score for each of the {len(self._edges)} edges but got {len(scores)}"
            )
        for edge, score in zip(self._edges, finite(scores).tolist(), strict=True):
            self._graph.edges[edge][self._weight] = score
        z = np.zeros(len(scores), dtype=np.bool_)
        for edge in self._chosen(self._algorithm(self._graph)):
            z[self._index(edge)] = True
        return z

    def _chosen(self, found: Any) -> Iterable[Any]:
        if self._returns == "path":
            return itertools.pairwise(list(found))
        return getattr(found, "edges", found)

    def _index(self, edge: Any) -> int:
        width = 3 if self._graph.is_multigraph() else 2
        try:
            return self._number[tuple(edge)[:width]]
        except (KeyError, TypeError):  # not an edge, such as a node
            is_path = self._returns == "path"
            expected = "a path over nodes" if is_path else "edges of the graph"
            hint = "returns='edges' for edges" if is_path else "returns='path' for a path of nodes"
            raise ValueError(
                f"expected algorithm to return {expected} but got {reprlib.repr(edge)}, which is "
                f"not an edge: set {hint}"
            ) from None


def from_networkx(
    graph: Any,
    algorithm: Callable[[Any], Any],
    *,
    weight: str = "weight",
    returns: Literal["edges", "path"] = "edges",
    sense: Literal["max", "min"] = "min",
    **settings: Any,
) -> PerInstance:
    """A solver from a NetworkX algorithm: scores [edges] -> the chosen edges, 0 or 1.

    Args:
        graph: a NetworkX graph; the scores are in the order of ``graph.edges``. It is copied.
        algorithm: a function of a graph, such as ``networkx.minimum_spanning_tree`` or, with
            ``returns="path"``, ``functools.partial(networkx.shortest_path, source=0, target=5,
            weight="weight")``.
        weight: the edge attribute that is set to the scores.
        returns: what the algorithm returns: "edges" (a graph or an iterable of edges) or a "path"
            of nodes.
        sense: the sense of the algorithm; "min" by default.
    settings: those of ``aimle.per_instance``. ``aimle.GraphPath``, ``DagPath``, ``SpanningTree``
    and ``Arborescence`` are native and faster.
    """
    check_graph("from_networkx", graph)
    check_type("from_networkx", algorithm, Callable, "algorithm to be callable")
    check_type("from_networkx", weight, str, "weight to be a str")
    check_choice("from_networkx", "returns", returns, ("edges", "path"))
    check_choice("from_networkx", "sense", sense, ("max", "min"))
    if returns == "path" and graph.is_multigraph():
        raise ValueError(
            "[aimle.from_networkx] expected returns='edges' for a graph with parallel edges but got"
            " 'path', which does not distinguish them"
        )
    fn = _OverEdges(graph.copy(), algorithm, weight, returns)
    return adapted(OneAtATime(fn), sense=sense, instance_dims=1, **settings)
