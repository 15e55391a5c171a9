"""The built-in structures: solvers as frozen settings. Ties go to the lower index unless a class
says otherwise."""

import dataclasses
import math
from numbers import Integral
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from aimle.settings.checks import check_choice, check_int, check_type
from aimle.solvers import Data, K, Solver, declared


@declared
class Argmax(Solver):
    """The one-hot vector of the largest score: [*batch, n] -> [*batch, n]. -inf is masked."""

    name: ClassVar[str] = "argmax"


@declared
class TopK(Solver):
    """The indicator of the k largest scores: [*batch, n] -> [*batch, n], exactly k ones a row.

    -inf counts as masked. k can also be given per row, in the call.
    """

    name: ClassVar[str] = "topk"

    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check_int("TopK", "k", self.k, 0))
        super().__post_init__()


@declared
class SpanningTree(Solver):
    """The maximum spanning tree of the complete graph on n vertices.

    The last dimension of scores determines the layout: n(n-1)/2 undirected entries in the order
    (0,1), (0,2), ..., (1,2), ..., or n(n-1) directed ones, receiver-major. In the directed layout
    the weight of {i, j} is the sum of both directions, and z is written to both. Layers draw one
    noise value for both directions, so directed scores define the model of their sums
    (docs/guide/deviations.md has the exception).
    """

    name: ClassVar[str] = "spanning_tree"

    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", check_int("SpanningTree", "n", self.n, 1))
        super().__post_init__()


@declared
class GridPath(Solver):
    """The cheapest path over grids of cell costs: [*batch, H, W] -> [*batch, H, W]. Sense: min.

    Both end cells count. A step goes to one of 8 or 4 neighbours and costs the cell it enters.
    source and target are (row, column); negative indices count from the end. +inf and masked cells
    are walls. Layers do not accept sense="max": negated scores would be costs below zero.
    negative: "clip" treats costs below zero as zero, "error" raises an error.
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
class Chain(Solver):
    """The best label sequence of a chain (Viterbi): [*batch, T - 1, C, C] -> the same shape.

    scores[t, i, j] is the score of label i at position t and label j at position t + 1
    (torch-struct uses the transpose). z has one edge (i, j) for every step, and consecutive edges
    agree.

        scores = aimle.chain_scores(emissions, transitions)     # [B, T, C] and [C, C]
        labels = aimle.chain_labels(aimle.Chain()(scores))      # [B, T]

    length (T) and labels (C) are inferred from the shape of the scores; if given, they must agree
    with it. -inf counts as masked. Trailing positions whose edges are all masked are past the end
    of the chain, and z is zero there: ``chain_mask`` makes such a mask from lengths. A chain of
    length 1 has no edges, and its z is zero or empty.
    Ties: the lower last label, then, going backwards, the lower previous label.
    """

    name: ClassVar[str] = "chain"

    length: int = 0
    labels: int = 0

    def __post_init__(self) -> None:
        for name in ("length", "labels"):
            object.__setattr__(self, name, check_int("Chain", name, getattr(self, name), 0))
        super().__post_init__()


@declared
class Bernoulli(Solver):
    """Each entry on or off independently: [*batch, n] -> [*batch, n], 1 where the score is > 0.

        mask = aimle.AIMLE(aimle.Bernoulli())(logits)           # a hard mask, with a gradient

    Layers use logistic noise by default: entry j is then on with probability sigmoid(logits[j]),
    which is also the exact distribution. Solutions vary in size. Masked entries and -inf are off.
    Ties: a score of zero is off.
    """

    name: ClassVar[str] = "bernoulli"


@declared
class Knapsack(Solver):
    """The best items whose weights fit into a capacity: [*batch, n] -> [*batch, n].

        solver = aimle.Knapsack([3, 1, 4], capacity=5)
        solver(torch.tensor([2.0, 1.0, 2.5]))                   # tensor([0., 1., 1.])
        aimle.Knapsack([0.75, 1.5], capacity=2.0, scale=100)    # two decimals

    Args:
        weights: integers >= 0, [n], or [*batch, n] for different weights per instance.
        capacity: an integer >= 0, or int64 [*batch].
        scale: weights and capacity are multiplied by it and must then be integers (to 1e-6).
        max_capacity: the largest capacity that may be used, divided by the common divisor of the
            weights; a GPU allocates scratch memory for it. It defaults to the solver's own
            capacity, so set it if calls pass larger ones.

    To use different weights and capacity in one call, or one knapsack per instance, pass
    ``data=aimle.Knapsack.pack(weights, capacity)``. Items with scores of zero or below are never
    taken. O(n capacity) time.
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
            largest = int(capacity.amax()) if capacity.numel() else 0
            most = min(largest, heaviest) // max(divisor, 1)
        for name, value in (
            ("weights", weights),
            ("capacity", capacity),
            ("scale", scale),
            ("max_capacity", check_int("Knapsack", "max_capacity", most, 0)),
            ("data", data),
        ):
            object.__setattr__(self, name, value)
        super().__post_init__()

    def row_arguments(
        self, owner: str, scores: Tensor, k: K, data: Data
    ) -> tuple[str, Tensor | None]:
        n = self.weights.shape[-1]
        if data is None and scores.dim() > 0 and scores.shape[-1] != n:
            raise ValueError(
                f"[aimle.{owner}] expected values of the {n} items, [*batch, {n}], but got shape "
                f"{list(scores.shape)}"
            )
        return super().row_arguments(owner, scores, k, data)

    @staticmethod
    def pack(weights: Any, capacity: Any, *, scale: int = 1) -> Tensor:
        """weights [*batch, n] and capacity [*batch] as data, int64 [*batch, n + 1]."""
        scale = check_int("Knapsack", "scale", scale, 1)
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
    """value times scale as int64; raises ValueError unless they are integers >= 0."""
    try:
        given = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(
            f"[aimle.Knapsack] expected {name} to be a number, or numbers, but got {value!r}"
        ) from None
    if given.is_floating_point():
        scaled = given.double() * scale
        result = scaled.round().long()
        fits = (scaled - result).abs() <= 1e-6 * scaled.abs().clamp(min=1)
        fits &= scaled.isfinite()
        if not bool(fits.all()):
            raise ValueError(
                f"[aimle.Knapsack] expected {name} to be integers after scale={scale} but got "
                f"{float(scaled[~fits].flatten()[0]):g}: set scale={10 * scale}, or round them"
            )
    elif given.dtype == torch.bool or given.is_complex():
        raise TypeError(f"[aimle.Knapsack] expected {name} to be numbers but got {given.dtype}")
    else:
        result = given.long() * scale
    if not given.is_cuda and bool((result < 0).any()):
        raise ValueError(f"[aimle.Knapsack] expected {name} >= 0 but got {int(result.min())}")
    return result


@declared
class LatticePath(Solver):
    """The best monotone path through a lattice of cells: [*batch, T, U] -> [*batch, T, U].

    It aligns two sequences of T and U items. z marks the cells of the path from (0, 0) to
    (T - 1, U - 1), both ends included, with the largest sum of scores.

        scores = -torch.cdist(frames, tokens)                    # [B, T, U]
        z = aimle.LatticePath()(scores)                          # dynamic time warping
        layer = aimle.AIMLE(aimle.LatticePath(moves="diagonal"))

    moves: "all": the path moves diagonally, down (next t) or right (next u). "straight": down or
        right. "diagonal": diagonally or down, so that every t has exactly one u, as in monotonic
        alignment search; there is no path if T < U.

    For ragged batches, a mask that keeps the first t rows and u columns makes a t x u lattice:

        mask = (torch.arange(T) < t[:, None])[:, :, None] & (torch.arange(U) < u[:, None])[:, None]

    The path ends in the last corner of the smallest rectangle that contains all unmasked cells.
    Masked cells within it and scores of -inf are walls. Scores may have any sign, and layers accept
    sense="min".
    Ties: going backwards from the end, diagonal before down before right.
    """

    name: ClassVar[str] = "lattice_path"

    moves: Literal["all", "straight", "diagonal"] = "all"

    def __post_init__(self) -> None:
        check_choice("LatticePath", "moves", self.moves, ("all", "straight", "diagonal"))
        super().__post_init__()


@declared
class LatticeMoves(Solver):
    """The best monotone path through a lattice of moves: [*batch, T, U, 3] -> [*batch, T, U, 3].

    Like ``LatticePath``, but with a score for every move: scores[t, u, m] is the score of entering
    (t, u) diagonally (m = 0), from above (1) or from the left (2), and z marks the moves of the
    path, one for every cell that it enters. No move enters (0, 0).

        scores = torch.stack([match, delete, insert], dim=-1)    # [B, T, U, 3]: an edit distance
        z = aimle.LatticeMoves()(scores)

    moves, masks and ties are as for LatticePath. A cell counts as unmasked if any of its moves is;
    ``mask[..., None]`` masks whole cells.
    """

    name: ClassVar[str] = "lattice_moves"

    moves: Literal["all", "straight", "diagonal"] = "all"

    def __post_init__(self) -> None:
        check_choice("LatticeMoves", "moves", self.moves, ("all", "straight", "diagonal"))
        super().__post_init__()


@declared
class Assignment(Solver):
    """The best one-to-one matching of rows and columns: [*batch, n, m] -> [*batch, n, m].

        theta = torch.tensor([[9.0, 8.0, 1.0], [8.0, 1.0, 2.0], [1.0, 3.0, 2.0]])
        aimle.Assignment()(theta).argmax(-1)               # tensor([1, 0, 2])
        layer = aimle.AIMLE(aimle.Assignment())

    z has min(n, m) ones, at most one per row and column. Masked entries and -inf are never chosen;
    if that leaves no such z, the status is TOO_FEW_ENTRIES. As many scores of +inf as possible are
    chosen. Scores are rounded once, to 2^-46 of the largest for 16 x 16 (2^-b, b = 50 -
    ceil(log2(min(n, m)))), and all sums of them are exact. Ties: row 0 gets the lowest column that
    it has in any best matching, then row 1, and so on. To batch matrices with fewer rows (n <= m),
    give missing rows scores of 0 and drop them from z.

    There is no exact distribution, because its normaliser is a permanent. For small instances
    ``aimle.exact.structures`` lists all matchings, and ``aimle.sinkhorn`` is the usual relaxation.
    """

    name: ClassVar[str] = "assignment"


@declared
class Arborescence(Solver):
    """The maximum spanning arborescence: [*batch, n, n] -> [*batch, n, n].

        theta = torch.tensor([[0.0, 3.0, 0.0], [1.0, 2.0, 5.0], [0.0, 4.0, 0.0]])
        aimle.Arborescence(3, single_root=True)(theta)     # 1 -> 0, 1 -> 2; the root is 1
        layer = aimle.AIMLE(aimle.Arborescence())

    scores[h, d] is the score of head h for dependent d; the diagonal holds the scores of roots. z
    has one 1 in every column: the head of the vertex, or the diagonal if the vertex is a root.
    Following heads leads from every vertex to a root. single_root: exactly one vertex is a root. n
    is optional and inferred from theta. To batch graphs with fewer vertices, attach the missing
    vertices to vertex 0, with a mask whose columns for them are True only there.

    Masked entries and -inf are never chosen; if that leaves no arborescence, the status is
    DISCONNECTED. As many scores of +inf as possible are chosen. Scores are rounded once, to 2^-45
    of the largest for 20 vertices (2^-b, b = 50 - ceil(log2(n))), and all sums of them are exact.
    Ties: the best z that is largest in row-major order.
    """

    name: ClassVar[str] = "arborescence"

    n: int = 0
    single_root: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", check_int("Arborescence", "n", self.n, 0))
        expected = "single_root to be True or False"
        check_type("Arborescence", self.single_root, bool, expected)
        super().__post_init__()
