"""The structures of the library: solvers as frozen settings. Ties go to the lower index unless a
class says otherwise."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from aimle._names import with_known_names
from aimle._settings import check_choice, check_int
from aimle.solvers import Solver, declared


@declared
@with_known_names
@dataclass(frozen=True, eq=False)
class Argmax(Solver):
    """The one-hot vector of the largest score: [*batch, n] -> [*batch, n]. -inf is masked."""

    name: ClassVar[str] = "argmax"


@declared
@with_known_names
@dataclass(frozen=True, eq=False)
class TopK(Solver):
    """The indicator of the k largest scores: [*batch, n] -> [*batch, n], exactly k ones a row.

    -inf counts as masked. k may also be given per row, in the call.
    """

    name: ClassVar[str] = "topk"

    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check_int("TopK", "k", self.k, 0))
        super().__post_init__()


@declared
@with_known_names
@dataclass(frozen=True, eq=False)
class SpanningTree(Solver):
    """The maximum spanning tree of the complete graph on n vertices.

    The last dimension of scores tells the layout: n(n-1)/2 undirected entries in the order (0,1),
    (0,2), ..., (1,2), ..., or n(n-1) directed ones, receiver-major, where the weight of {i, j} is
    the sum of both directions and z is written to both. Layers draw one noise for both directions,
    so that directed scores are the model of their sums (docs/guide/deviations.md has the exception).
    """

    name: ClassVar[str] = "spanning_tree"

    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", check_int("SpanningTree", "n", self.n, 1))
        super().__post_init__()


@declared
@with_known_names
@dataclass(frozen=True, eq=False)
class GridPath(Solver):
    """The cheapest path over grids of cell costs: [*batch, H, W] -> [*batch, H, W]. Sense: min.

    Both ends count; a step enters one of 8 or 4 neighbours and costs the cell entered. source and
    target are (row, column), negative ones counted from the end. +inf and masked cells are walls.
    Layers refuse sense="max": negated scores would be costs below zero.
    negative: "clip" takes costs below zero as zero, "error" refuses them.
    Ties: fewest cells, then raster order.
    """

    name: ClassVar[str] = "grid_path"

    neighbourhood: int = 8
    source: tuple[int, int] = (0, 0)
    target: tuple[int, int] = (-1, -1)
    negative: Literal["clip", "error"] = "clip"

    def __post_init__(self) -> None:
        check_choice("GridPath", "neighbourhood", self.neighbourhood, (8, 4))
        check_choice("GridPath", "negative", self.negative, ("clip", "error"))
        for name in ("source", "target"):
            value = getattr(self, name)
            if (
                not isinstance(value, tuple | list)
                or len(value) != 2
                or not all(isinstance(i, Integral) and not isinstance(i, bool) for i in value)
            ):
                raise TypeError(
                    f"[aimle.GridPath] expected {name} to be (row, column), two ints, "
                    f"but got {value!r}"
                )
            object.__setattr__(self, name, tuple(int(i) for i in value))
        super().__post_init__()


@declared
@with_known_names
@dataclass(frozen=True, eq=False)
class Chain(Solver):
    """The best label sequence of a chain (Viterbi): [*batch, T - 1, C, C] -> the same shape.

    scores[t, i, j] is the score of label i at position t and label j at position t + 1 (those of
    torch-struct transposed); z has one edge (i, j) for every step, and consecutive edges agree.

        scores = aimle.chain_scores(emissions, transitions)     # [B, T, C] and [C, C]
        labels = aimle.chain_labels(aimle.Chain()(scores))      # [B, T]

    length (T) and labels (C) follow from the shape of the scores, and must agree with it if they
    are given. -inf counts as masked. Positions at the end whose edges are all masked are beyond the
    chain's end, and z is zero there: ``chain_mask`` makes such a mask from lengths. A chain of
    length 1 has no edges, and its z is zero or empty.
    Ties: the lower last label, then, walking back, the lower label before.
    """

    name: ClassVar[str] = "chain"

    length: int = 0
    labels: int = 0

    def __post_init__(self) -> None:
        for name in ("length", "labels"):
            object.__setattr__(self, name, check_int("Chain", name, getattr(self, name), 0))
        super().__post_init__()


@declared
@with_known_names
@dataclass(frozen=True, eq=False)
class Bernoulli(Solver):
    """Every entry on or off by itself: [*batch, n] -> [*batch, n], 1 where a score is above zero.

        mask = aimle.AIMLE(aimle.Bernoulli())(logits)           # a hard mask, with a gradient

    Layers add logistic noise unless they are told otherwise: entry j is then on with probability
    sigmoid(logits[j]), which is also the exact distribution. Solutions vary in size. Masked entries
    and -inf are off. Ties: a score of zero is off.
    """

    name: ClassVar[str] = "bernoulli"


@declared
@with_known_names
@dataclass(frozen=True, eq=False)
class Knapsack(Solver):
    """The best items whose weights fit into a capacity: [*batch, n] -> [*batch, n].

        solver = aimle.Knapsack([3, 1, 4], capacity=5)
        solver(torch.tensor([2.0, 1.0, 2.5]))                   # tensor([0., 1., 1.])
        aimle.Knapsack([0.75, 1.5], capacity=2.0, scale=100)    # two decimals

    Args:
        weights: integers >= 0, [n], or with one more number for every item of a batch [*batch, n].
        capacity: an integer >= 0, or int64 [*batch].
        scale: weights and capacity are multiplied by it and must then be integers (to 1e-6).
        max_capacity: the largest capacity that may come, over the common divisor of the weights;
            a GPU provides room for it. The solver's own capacity by default, so give it if calls
            bring larger ones.

    Another knapsack for a call, or one for each instance: ``data=aimle.Knapsack.pack(weights,
    capacity)``. Items with scores of zero and below are never taken. O(n capacity) time.
    """

    name: ClassVar[str] = "knapsack"

    weights: Any = dataclasses.field(metadata={"data": True})
    capacity: Any = dataclasses.field(metadata={"data": True})
    scale: int = dataclasses.field(default=1, metadata={"data": True})
    max_capacity: int | None = None

    def __post_init__(self) -> None:
        scale = check_int("Knapsack", "scale", self.scale, 1)
        data = Knapsack.pack(self.weights, self.capacity, scale=scale)
        weights, capacity = data[..., :-1], data[..., -1]
        most = self.max_capacity
        if most is None:
            divisor = math.gcd(*weights.flatten().tolist()) if weights.numel() else 1
            heaviest = int(weights.sum(-1).amax()) if weights.numel() else 0
            most = min(int(capacity.amax()), heaviest) // max(divisor, 1)
        for name, value in (
            ("weights", weights),
            ("capacity", capacity),
            ("scale", scale),
            ("max_capacity", check_int("Knapsack", "max_capacity", most, 0)),
            ("data", data),
        ):
            object.__setattr__(self, name, value)
        super().__post_init__()

    @staticmethod
    def pack(weights: Any, capacity: Any, *, scale: int = 1) -> Tensor:
        """weights [*batch, n] and capacity [*batch] as data, int64 [*batch, n + 1]."""
        weights = _integers("weights", weights, scale)
        capacity = _integers("capacity", capacity, scale).to(weights.device)
        if weights.dim() == 0:
            raise ValueError("[aimle.Knapsack] expected weights of shape [*batch, n] but got []")
        try:
            batch = torch.broadcast_shapes(weights.shape[:-1], capacity.shape)
        except RuntimeError:
            raise ValueError(
                "[aimle.Knapsack] expected a capacity for every knapsack but got weights of shape "
                f"{list(weights.shape)} and capacity of shape {list(capacity.shape)}"
            ) from None
        n = weights.shape[-1]
        return torch.cat([weights.expand(*batch, n), capacity.expand(batch).unsqueeze(-1)], dim=-1)


def _integers(name: str, value: Any, scale: int) -> Tensor:
    """int64 of value times scale; ValueError for what is no integer >= 0."""
    given = torch.as_tensor(value)
    if given.is_floating_point():
        scaled = given.double() * scale
        result = scaled.round().long()
        fits = bool(((scaled - result).abs() <= 1e-6 * scaled.abs().clamp(min=1)).all())
        if not fits:
            raise ValueError(
                f"[aimle.Knapsack] expected {name} to be integers after scale={scale} but got "
                f"{float(scaled[(scaled - result).abs() > 1e-6].flatten()[0]):g}: give "
                f"scale={10 * scale}, or round them"
            )
    elif given.dtype == torch.bool or given.is_complex():
        raise TypeError(f"[aimle.Knapsack] expected {name} to be numbers but got {given.dtype}")
    else:
        result = given.long() * scale
    if not given.is_cuda and bool((result < 0).any()):
        raise ValueError(f"[aimle.Knapsack] expected {name} >= 0 but got {int(result.min())}")
    return result


@declared
@with_known_names
@dataclass(frozen=True, eq=False)
class LatticePath(Solver):
    """The best monotone path through a lattice of cells: [*batch, T, U] -> [*batch, T, U].

    It aligns two sequences of T and U items: z marks the cells of the path from (0, 0) to
    (T - 1, U - 1), both ends included, that maximises the sum of their scores.

        scores = -torch.cdist(frames, tokens)                    # [B, T, U]
        z = aimle.LatticePath()(scores)                          # dynamic time warping
        layer = aimle.AIMLE(aimle.LatticePath(moves="diagonal"))

    moves: "all", a path goes diagonally, down (the next t) or right (the next u); "straight", down
        or right; "diagonal", diagonally or down, so that every t has exactly one u, as in monotonic
        alignment search. The last has no path where T < U.
    A mask that leaves the first t rows and u columns makes a t x u lattice, for ragged batches:

        mask = (torch.arange(T) < t[:, None])[:, :, None] & (torch.arange(U) < u[:, None])[:, None]

    The path ends in the corner of the smallest rectangle that has all unmasked cells. Masked cells
    within it and scores of -inf are walls. Scores may have any sign, and layers take sense="min".
    Ties: walking back from the end, diagonal before down before right.
    """

    name: ClassVar[str] = "lattice_path"

    moves: Literal["all", "straight", "diagonal"] = "all"

    def __post_init__(self) -> None:
        check_choice("LatticePath", "moves", self.moves, ("all", "straight", "diagonal"))
        super().__post_init__()


@declared
@with_known_names
@dataclass(frozen=True, eq=False)
class LatticeMoves(Solver):
    """The best monotone path through a lattice of moves: [*batch, T, U, 3] -> [*batch, T, U, 3].

    As ``LatticePath``, with a score for every move: scores[t, u, m] is that of entering (t, u)
    diagonally (m = 0), from above (1) or from the left (2), and z marks the moves of the path, one
    for every cell that it enters. Nothing enters (0, 0).

        scores = torch.stack([match, delete, insert], dim=-1)    # [B, T, U, 3]: an edit distance
        z = aimle.LatticeMoves()(scores)

    moves, masks and ties as for LatticePath; a cell counts as unmasked if one of its moves is, and
    ``mask[..., None]`` masks cells.
    """

    name: ClassVar[str] = "lattice_moves"

    moves: Literal["all", "straight", "diagonal"] = "all"

    def __post_init__(self) -> None:
        check_choice("LatticeMoves", "moves", self.moves, ("all", "straight", "diagonal"))
        super().__post_init__()


@declared
@with_known_names
@dataclass(frozen=True, eq=False)
class Assignment(Solver):
    """The best one-to-one matching of rows and columns: [*batch, n, m] -> [*batch, n, m].

        theta = torch.tensor([[9.0, 8.0, 1.0], [8.0, 1.0, 2.0], [1.0, 3.0, 2.0]])
        aimle.Assignment()(theta).argmax(-1)               # tensor([1, 0, 2])
        layer = aimle.AIMLE(aimle.Assignment())

    z has min(n, m) ones, no two of them in a row or a column. Masked entries and -inf are never
    chosen; where they leave no such z the status is TOO_FEW_ENTRIES. As many scores of +inf are
    chosen as possible. Scores are rounded once, to 2^-46 of the largest for 16 x 16 (2^-b, b = 50 -
    ceil(log2(min(n, m)))), and all sums of them are exact. Ties: row 0 has the lowest column that
    it has in any best matching, then row 1, and so on. Matrices of fewer rows, in a batch, n <= m:
    give a row that is not there scores of 0, and leave it out of z.

    There is no exact distribution: its normaliser is a permanent. ``aimle.exact.structures`` lists
    small instances, and ``aimle.sinkhorn`` is the usual relaxation.
    """

    name: ClassVar[str] = "assignment"


@declared
@with_known_names
@dataclass(frozen=True, eq=False)
class Arborescence(Solver):
    """The maximum spanning arborescence: [*batch, n, n] -> [*batch, n, n].

        theta = torch.tensor([[0.0, 3.0, 0.0], [1.0, 2.0, 5.0], [0.0, 4.0, 0.0]])
        aimle.Arborescence(3, single_root=True)(theta)     # 1 -> 0, 1 -> 2; the root is 1
        layer = aimle.AIMLE(aimle.Arborescence())

    scores[h, d] is the score of head h for dependent d, the diagonal that of a root. z has one 1 in
    every column: the head of the vertex, or the diagonal where it is a root; heads lead from every
    vertex to a root. single_root: exactly one vertex is a root. n may be left out: theta tells.
    Graphs of fewer vertices, in a batch: let the others hang on vertex 0, by a mask whose column is
    True there alone.

    Masked entries and -inf are never chosen; where they leave no arborescence the status is
    DISCONNECTED. As many scores of +inf are chosen as possible. Scores are rounded once, to 2^-45
    of the largest for 20 vertices (2^-b, b = 50 - ceil(log2(n))), and all sums of them are exact.
    Ties: the best z that is largest in row-major order.
    """

    name: ClassVar[str] = "arborescence"

    n: int = 0
    single_root: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", check_int("Arborescence", "n", self.n, 0))
        if not isinstance(self.single_root, bool):
            raise TypeError(
                "[aimle.Arborescence] expected single_root to be True or False but got "
                f"{type(self.single_root).__name__}"
            )
        super().__post_init__()
