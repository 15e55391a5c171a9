"""The native solvers: settings objects that map scores to the best discrete structure.

A solver is called with scores ``[*batch, *instance]`` and returns z of the same shape and dtype,
entries exactly 0 or 1, a maximiser of <scores, z> (``GridPath``: a minimiser). Ties go to the lower
index. z is piecewise constant in the scores and carries no gradient: that is what the layers add.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from dataclasses import dataclass
from functools import cache
from numbers import Integral
from typing import Any, ClassVar, Literal, TypeVar

import torch
from torch import Tensor

from aimle import _library  # noqa: F401  (registers the ops)
from aimle._names import with_known_names
from aimle._settings import check_choice, check_int, check_tensor

_ops = torch.ops.aimle

# The `check` argument of the solver ops: which bad values raise. See aimle.solve.
CHECK_NOTHING, CHECK_DEFAULT, CHECK_ALL = 0, 1, 2


class Solver:
    """What every native solver is: frozen settings, a sense, and the size of an instance.

    The class attributes are what the library declares of it (aimle/registry/register_solver.h).
    """

    #: Its name in the registry, in texts and on the command line.
    name: ClassVar[str]
    #: "max" if <scores, z> is maximised, "min" if scores are costs.
    sense: ClassVar[Literal["max", "min"]]
    #: How many trailing dimensions of scores belong to one instance.
    instance_dims: ClassVar[int]
    #: Whether all solutions of an instance have the same number of ones.
    fixed_size: ClassVar[bool]
    #: Whether scores are costs, which must not be below zero.
    has_costs: ClassVar[bool]
    #: Whether a k per row may be given.
    takes_k: ClassVar[bool]
    #: Whether instances bring numbers beside their scores, such as weights or a graph.
    takes_data: ClassVar[bool]
    #: Whether its structures can be listed (aimle.exact.structures).
    lists: ClassVar[bool]
    #: Whether every entry has a threshold (aimle.Thresholds).
    has_thresholds: ClassVar[bool]
    #: Whether it has an exact distribution in closed form (aimle.exact).
    has_exact: ClassVar[bool]
    #: The noise of layers that are given none, by its name, and its temperature.
    default_noise: ClassVar[str]
    default_temperature: ClassVar[float]
    #: The difference that AIMLE takes by default: central or forward.
    symmetric_perturbation: ClassVar[bool]

    #: The solver as ops take it, for example "topk:k=5".
    text: str
    #: What instances bring beside their scores, int64 [length], where the solver takes data.
    data: Tensor | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", self._text())

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        assert isinstance(other, Solver)
        mine, others = self.__getstate__(), other.__getstate__()
        return mine.keys() == others.keys() and all(
            torch.equal(value, others[name]) if isinstance(value, Tensor) else value == others[name]
            for name, value in mine.items()
        )

    def __hash__(self) -> int:
        # The settings are left out: torch 2.11 hashes a solver made inside a compiled function
        # before it has any.
        return hash(type(self))

    def _text(self) -> str:
        settings = [
            f"{field.name}={_setting_text(getattr(self, field.name))}"
            for field in dataclasses.fields(self)  # type: ignore[arg-type]
            if not field.metadata.get("data")
        ]
        return f"{self.name}:{','.join(settings)}" if settings else self.name

    def text_for(self, owner: str, k: Tensor | int | None) -> str:
        """The text for a call with this k, which takes the place of the solver's if it is an int.

        TypeError for a k that the solver does not take.
        """
        if k is None:
            return self.text
        if not self.takes_k:
            raise TypeError(
                f"[aimle.{owner}] {type(self).__name__} takes no k; only solvers such as "
                "aimle.TopK do"
            )
        if isinstance(k, Tensor):
            return self.text
        if not isinstance(k, Integral | torch.SymInt):
            raise TypeError(
                f"[aimle.{owner}] expected k to be an int or an int64 tensor but got {k!r}, "
                f"a {type(k).__name__}"
            )
        return dataclasses.replace(self, k=check_int(owner, "k", int(k), 0)).text

    def _data_on(self, device: torch.device) -> Tensor:
        """The solver's own data there, copied once."""
        assert self.data is not None
        if device == self.data.device:
            return self.data
        if torch.compiler.is_compiling():
            return self.data.to(device)
        copies: dict[torch.device, Tensor] = self.__dict__.setdefault("_copies", {})
        if device not in copies:
            copies[device] = self.data.to(device)
        return copies[device]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_copies"}

    def row_arguments(
        self, owner: str, scores: Tensor, k: Tensor | int | None, data: Tensor | None
    ) -> tuple[str, Tensor | None]:
        """The text for a call, and the tensor that its instances bring: k or data.

        TypeError for what the solver does not take, or takes and was not given.
        """
        if self.takes_data:
            given = self.data if data is None else data
            if given is None:
                raise TypeError(
                    f"[aimle.{owner}] {type(self).__name__} needs data, int64 [length] or "
                    "[*batch, length]: give the solver its own, or pass data=..."
                )
            check_tensor(owner, "data", given)
            if data is None:
                given = self._data_on(scores.device)
            return self.text_for(owner, k), given
        if data is not None:
            raise TypeError(f"[aimle.{owner}] {type(self).__name__} takes no data")
        return self.text_for(owner, k), k if isinstance(k, Tensor) else None

    def solve_rows(
        self,
        scores: Tensor,
        mask: Tensor | None = None,
        k: Tensor | int | None = None,
        check: int = CHECK_DEFAULT,
        data: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """z like scores, and a uint8 status of the batch shape."""
        owner = type(self).__name__
        check_tensor(owner, "scores", scores)
        if mask is not None:
            check_tensor(owner, "mask", mask)
        text, row_data = self.row_arguments(owner, scores, k, data)
        return _ops.solve.default(scores, text, mask, row_data, check)

    def __call__(
        self,
        scores: Tensor,
        *,
        mask: Tensor | None = None,
        k: Tensor | int | None = None,
        data: Tensor | None = None,
    ) -> Tensor:
        """Solve every instance.

        scores: [*batch, *instance], float32, float64, bfloat16 or float16.
        mask: bool, broadcastable to scores; entries that are False are never chosen.
        k: only for solvers that take it (TopK); an int, or int64 broadcastable to *batch, in place
            of the solver's k.
        data: only for solvers that take it; int64 [length] or broadcastable to [*batch, length],
            in place of the solver's own.
        """
        return self.solve_rows(scores, mask, k, data=data)[0]


def _setting_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ":".join(map(str, value)) if isinstance(value, tuple) else str(value)


def declarations() -> dict[str, dict[str, Any]]:
    """What the library knows of every solver, by name: its summary, settings and abilities."""
    return {one["name"]: one for one in json.loads(_ops.solvers.default())}


_CLASSES: dict[str, type[Solver]] = {}
_AnySolver = TypeVar("_AnySolver", bound=type[Solver])


def _declared(cls: _AnySolver) -> _AnySolver:
    """Fills in the class attributes, and makes the class known to ``aimle.solver``."""
    declared = declarations()[cls.name]
    cls.sense = declared["sense"]
    cls.instance_dims = declared["instance_dims"]
    cls.fixed_size = declared["fixed_size"]
    cls.has_costs = declared["has_costs"]
    cls.takes_k = declared["takes_k"]
    cls.takes_data = declared["takes_data"]
    cls.lists = declared["lists"]
    cls.has_thresholds = declared["thresholds"]
    cls.has_exact = declared["exact"]
    cls.default_noise = declared["noise"]
    cls.default_temperature = declared["temperature"]
    cls.symmetric_perturbation = not cls.has_costs
    _CLASSES[cls.name] = cls
    return cls


def solver(name: str, **settings: Any) -> Solver:
    """Any solver of the library, or of libraries that were loaded, by its name and settings.

        aimle.solver("topk", k=3)                               # aimle.TopK(k=3)
        aimle.solver("viterbi", length=12, labels=5)            # of your own: aimle.load_library

    A cell of a grid is a pair (row, column). ``aimle.solver_names()`` lists the names.
    """
    if name in _CLASSES:
        return _CLASSES[name](**settings)
    if not isinstance(name, str):
        raise TypeError(f"[aimle.solver] expected a name but got {type(name).__name__}")
    if name not in solver_names():
        _ops.solver_text.default(name)  # a ValueError that names those that there are
    return _class_of(name)(**settings)


def solver_names() -> list[str]:
    """The names of all solvers, those of the library first."""
    return list(declarations())


def load_library(path: str | os.PathLike[str]) -> list[str]:
    """Loads a library of solvers of your own, and returns the names of those that it added.

    See examples/custom_solver. Loading a library again changes nothing.
    """
    path = os.fspath(path)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"[aimle.load_library] there is no file {path}")
    before = set(solver_names())
    try:
        torch.ops.load_library(path)
    except OSError as error:
        raise OSError(f"[aimle.load_library] {path} cannot be loaded: {error}") from error
    return [name for name in solver_names() if name not in before]


@cache
def _class_of(name: str) -> type[Solver]:
    """A class for a solver that has none here, made from its declaration."""
    declared = declarations()[name]
    fields: list[Any] = []
    for setting in declared["settings"]:
        kind = {"integer": int, "cell": tuple, "choice": str}[setting["type"]]
        default = setting["default"]
        if default is None:
            fields.append((setting["name"], kind))
        else:
            value: Any = default
            if kind is int:
                value = int(default)
            elif kind is tuple:
                value = tuple(map(int, default.split(":")))
            fields.append((setting["name"], kind, dataclasses.field(default=value)))
    fields.sort(key=len)  # those that must be given first

    def check(self: Solver) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            plain = value.tolist() if hasattr(value, "tolist") else value  # NumPy's numbers
            if isinstance(plain, bool) or not isinstance(plain, int | str | tuple | list):
                raise TypeError(
                    f"[aimle.{name}] expected {field.name} to be an int, a pair of ints or a word "
                    f"but got {type(value).__name__}"
                )
            plain = tuple(plain) if isinstance(plain, list) else plain
            object.__setattr__(self, field.name, plain)
        object.__setattr__(self, "text", _ops.solver_text.default(self._text()))

    cls = dataclasses.make_dataclass(
        name,
        fields,
        bases=(Solver,),
        frozen=True,
        eq=False,
        namespace={
            "name": name,
            "__doc__": declared["summary"],
            "__post_init__": check,
            "__reduce__": lambda self: (_make, (name, dataclasses.asdict(self))),
        },
    )
    return _declared(with_known_names(cls))


def _make(name: str, settings: dict[str, Any]) -> Solver:
    """For pickles of solvers without a class in a module."""
    return solver(name, **settings)


def check_solver(owner: str, solver: object) -> None:
    """TypeError unless solver is a native one or a callable, and not the class of one."""
    if isinstance(solver, type) and issubclass(solver, Solver):
        raise TypeError(
            f"[aimle.{owner}] expected a solver such as aimle.TopK(k=3) but got the class "
            f"{solver.__name__} itself"
        )
    if not callable(solver):
        raise TypeError(
            f"[aimle.{owner}] expected solver to be a native solver such as aimle.TopK(k=3) or a "
            f"callable but got {type(solver).__name__}"
        )


def resolve_sense(
    owner: str, solver: object, sense: Literal["max", "min"] | None
) -> Literal["max", "min"]:
    """The sense in which a layer uses its solver: the one given, or the solver's own.

    ValueError for one that the solver cannot have.
    """
    check_choice(owner, "sense", sense, (None, "max", "min"))
    if isinstance(solver, Solver) and solver.has_costs and sense == "max":
        raise ValueError(
            f"[aimle.{owner}] expected sense='min' for {type(solver).__name__}, whose costs are "
            "never below zero, but got sense='max': give it costs, for example "
            "-scores.clamp(max=0) or softplus(-scores), and leave out sense"
        )
    own: Literal["max", "min"] = getattr(solver, "sense", "max")
    return sense or own


@_declared
@with_known_names
@dataclass(frozen=True, eq=False)
class Argmax(Solver):
    """The one-hot vector of the largest score: [*batch, n] -> [*batch, n]. -inf is masked."""

    name: ClassVar[str] = "argmax"


@_declared
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


@_declared
@with_known_names
@dataclass(frozen=True, eq=False)
class SpanningTree(Solver):
    """The maximum spanning tree of the complete graph on n vertices.

    The last dimension of scores tells the layout: n(n-1)/2 undirected entries in the order (0,1),
    (0,2), ..., (1,2), ..., or n(n-1) directed ones, receiver-major, where the weight of {i, j} is
    the sum of both directions and z is written to both. Layers draw one noise for both directions,
    so that directed scores are the model of their sums (docs/deviations.md has the exception).
    """

    name: ClassVar[str] = "spanning_tree"

    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", check_int("SpanningTree", "n", self.n, 1))
        super().__post_init__()


@_declared
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


@_declared
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


@_declared
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


@_declared
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


@_declared
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


@_declared
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


@_declared
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


@_declared
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
