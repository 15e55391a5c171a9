"""Paths in graphs: ``GraphPath`` for any graph with costs, ``DagPath`` for acyclic graphs."""

import dataclasses
import reprlib
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

import torch
from torch import Tensor

from aimle.settings.checks import check_bool, check_choice, check_graph, check_int
from aimle.solvers import Data, K, Solver, declared

_Path = TypeVar("_Path", bound="_PathOverGraph")


@dataclass(frozen=True, eq=False)
class _PathOverGraph(Solver):
    """Base class: the graph, which is stored as data."""

    edges: Any
    source: Any
    target: Any
    num_vertices: int | None = None

    def _fill(self, directed: bool) -> None:
        """Checks the graph and builds its data."""
        owner = type(self).__name__
        edges = _integers(owner, "edges", self.edges)
        if edges.numel() == 0:
            edges = (
                edges.reshape(*edges.shape[:-2], 0, 2) if edges.dim() > 1 else edges.new_empty(0, 2)
            )
        if edges.dim() < 2 or edges.shape[-1] != 2:
            raise ValueError(
                f"[aimle.{owner}] expected edges as pairs (tail, head) of shape [E, 2] but got "
                f"shape {list(edges.shape)}"
                + (": pass edges.mT" if edges.dim() > 1 and edges.shape[-2] == 2 else "")
            )
        ends = {name: _integers(owner, name, getattr(self, name)) for name in ("source", "target")}
        parts = {"edges": edges, **ends}
        largest = max((int(part.max()) for part in parts.values() if part.numel() > 0), default=0)
        given: Any = largest + 1 if self.num_vertices is None else self.num_vertices
        if isinstance(given, Tensor) and given.numel() == 1:  # such as edges.max() + 1
            given = given.item()
        vertices = check_int(owner, "num_vertices", given, 1)
        for name, part in parts.items():
            low, high = (int(part.min()), int(part.max())) if part.numel() > 0 else (0, 0)
            if low < 0 or high >= vertices:
                bad = low if low < 0 else high
                raise ValueError(
                    f"[aimle.{owner}] expected {name} to be vertices from 0 to {vertices - 1} but "
                    f"got {bad}"
                    + ("" if bad < 0 else f": set num_vertices={bad + 1} if there are that many")
                )
        try:
            torch.broadcast_shapes(edges.shape[:-2], *(end.shape for end in ends.values()))
        except RuntimeError:
            shapes = [f"{name} of shape {list(part.shape)}" for name, part in parts.items()]
            raise ValueError(
                f"[aimle.{owner}] expected a source and a target for every graph but got "
                f"{shapes[0]}, {shapes[1]} and {shapes[2]}"
            ) from None
        self._set("edges", edges)
        for name, end in ends.items():
            self._set(name, int(end) if end.dim() == 0 else end)
        self._set("num_vertices", vertices)
        self._set("data", self._pack(edges, ends["source"], ends["target"], vertices, directed))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _text(self) -> str:
        return f"{self.name}:vertices={self.num_vertices}"

    def row_arguments(
        self, owner: str, scores: Tensor, k: K, data: Data
    ) -> tuple[str, Tensor | None]:
        count = self.edges.shape[-2]
        if data is None and scores.dim() > 0 and scores.shape[-1] != count:
            raise ValueError(
                f"[aimle.{owner}] expected scores of the {count} edges, [*batch, {count}], but got "
                f"shape {list(scores.shape)}"
            )
        return super().row_arguments(owner, scores, k, data)

    @staticmethod
    def _pack(
        edges: Tensor, source: Tensor, target: Tensor, vertices: int, directed: bool
    ) -> Tensor:
        """The data of aimle/map/graph_path.h, int64 [*batch, length]."""
        count = edges.shape[-2]
        entries = torch.arange(count, device=edges.device)
        if not directed:
            edges = torch.cat([edges, edges.flip(-1)], dim=-2)
            entries = entries.repeat(2)
        heads, order = edges[..., 1].sort(dim=-1, stable=True)
        tails = edges[..., 0].gather(-1, order)
        every = torch.arange(vertices + 1, device=edges.device)
        offsets = torch.searchsorted(heads, every.expand(*heads.shape[:-1], -1).contiguous())
        source, target = source.to(edges.device), target.to(edges.device)
        batch = torch.broadcast_shapes(edges.shape[:-2], source.shape, target.shape)
        numbers = [source.unsqueeze(-1), target.unsqueeze(-1), offsets, tails, entries[order]]
        return torch.cat([part.expand(*batch, part.shape[-1]) for part in numbers], dim=-1)

    @classmethod
    def from_networkx(
        cls: type[_Path], graph: Any, source: Any, target: Any, **settings: Any
    ) -> _Path:
        """From a NetworkX graph: vertices and edges in the order of graph.nodes and graph.edges."""
        check_graph(cls.__name__, graph)
        number = {node: i for i, node in enumerate(graph.nodes)}
        for name, node in (("source", source), ("target", target)):
            if node not in graph:  # False for lists, which a dict would refuse
                raise ValueError(
                    f"[aimle.{cls.__name__}] expected {name} to be a node of the graph but got "
                    f"{node!r}"
                )
        edges = [(number[edge[0]], number[edge[1]]) for edge in graph.edges]
        if "directed" in {field.name for field in dataclasses.fields(cls)}:
            settings.setdefault("directed", graph.is_directed())
        elif not graph.is_directed():
            raise ValueError(
                f"[aimle.{cls.__name__}] expected a directed graph; aimle.GraphPath takes others"
            )
        return cls(edges, number[source], number[target], len(number), **settings)


@declared
class GraphPath(_PathOverGraph):
    """The cheapest path over the edges of a graph: costs [*batch, E] -> [*batch, E]. Sense: min.

        solver = aimle.GraphPath([(0, 1), (1, 2), (0, 2)], source=0, target=2)
        solver(torch.tensor([1.0, 1.0, 3.0]))                   # tensor([1., 1., 0.])

    costs and z are in the order of the edges; z marks the edges of the path. +inf and masked edges
    are walls. Costs must not be below zero, and layers do not accept sense="max"; for acyclic
    graphs, ``DagPath`` takes scores of any sign.

    Args:
        edges: pairs (tail, head), [E, 2].
        source, target: vertices, or int64 [*batch] for different ends per instance. If they are the
            same, z is zero.
        num_vertices: vertices are 0 ... num_vertices - 1; by default up to the largest one named.
        directed: False allows paths to use edges in both directions.
        negative: "clip" treats costs below zero as zero, "error" raises an error.

    To use another graph with the same number of vertices in one call, or one graph per instance,
    pass the ``data`` of another GraphPath as ``data=``. ``GraphPath.from_networkx(graph, source,
    target)`` converts a NetworkX graph.
    Ties: fewest edges, then the lower index.
    """

    name: ClassVar[str] = "graph_path"

    directed: bool = True
    negative: Literal["clip", "error"] = "clip"

    def __post_init__(self) -> None:
        self._set("directed", check_bool("GraphPath", "directed", self.directed))
        check_choice("GraphPath", "negative", self.negative, ("clip", "error"))
        self._fill(self.directed)
        super().__post_init__()

    def _text(self) -> str:
        return f"{super()._text()},negative={self.negative}"


@declared
class DagPath(_PathOverGraph):
    """The best path over the edges of an acyclic graph: [*batch, E] -> [*batch, E].

        solver = aimle.DagPath([(0, 1), (1, 2), (0, 2)], source=0, target=2)
        solver(torch.tensor([1.0, -3.0, -1.0]))                 # tensor([0., 0., 1.])
        layer = aimle.AIMLE(solver, sense="min")                # theta are costs

    Scores of any sign are maximised; layers accept sense="min" for costs. -inf and masked edges are
    walls. Unlike graphs with cycles, it has an exact distribution (``aimle.exact``).

    Args:
        edges: pairs (tail, head), [E, 2], in any order, without a cycle.
        source, target, num_vertices: as for ``GraphPath``.

    Ties: fewest edges, then the lower index.
    """

    name: ClassVar[str] = "dag_path"

    def __post_init__(self) -> None:
        self._fill(directed=True)
        super().__post_init__()

    @staticmethod
    def _pack(
        edges: Tensor, source: Tensor, target: Tensor, vertices: int, directed: bool
    ) -> Tensor:
        number = _topological_numbers(edges, vertices)
        edges = number.gather(-1, edges.flatten(-2)).view(edges.shape)
        batch = torch.broadcast_shapes(number.shape[:-1], source.shape, target.shape)
        number = number.expand(*batch, vertices)
        source, target = (
            number.gather(-1, end.to(edges.device).expand(batch).unsqueeze(-1)).squeeze(-1)
            for end in (source, target)
        )
        return _PathOverGraph._pack(edges, source, target, vertices, directed)


def _topological_numbers(edges: Tensor, vertices: int) -> Tensor:
    """A topological numbering [*batch, vertices]: every edge goes from a lower to a higher number.
    Vertices are ordered by level, so that long runs of vertices do not depend on each other."""
    tails, heads = edges[..., 0], edges[..., 1]
    level = edges.new_zeros(*edges.shape[:-2], vertices)  # edges of the longest path to a vertex
    for _ in range(vertices):
        step = level.gather(-1, tails) + 1
        late = step > level.gather(-1, heads)
        if not bool(late.any()):
            return level.argsort(dim=-1, stable=True).argsort(dim=-1)
        level = level.scatter_reduce(-1, heads, step, "amax")
    tail, head = edges[late][0].tolist()
    raise ValueError(
        f"[aimle.DagPath] expected a graph without cycles but the edge ({tail}, {head}) is on or "
        "downstream of a cycle: use aimle.GraphPath, with costs >= 0"
    )


def _integers(owner: str, name: str, value: Any) -> Tensor:
    """value as int64; raises TypeError unless it holds integers."""
    try:
        given = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(
            f"[aimle.{owner}] expected {name} to be vertex numbers, integers, but got "
            f"{reprlib.repr(value)}"
        ) from None
    if given.numel() == 0 and given.is_floating_point():
        given = given.long()  # an empty list
    if given.is_floating_point() or given.is_complex() or given.dtype == torch.bool:
        raise TypeError(
            f"[aimle.{owner}] expected {name} to be vertex numbers, integers, but got "
            f"{str(given.dtype).removeprefix('torch.')}"
        )
    return given.long()
