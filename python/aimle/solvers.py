"""The native solvers: settings objects that map scores to the best discrete structure.

A solver is called with scores ``[*batch, *instance]`` and returns z of the same shape and dtype,
entries exactly 0 or 1, a maximiser of <scores, z> (``GridPath``: a minimiser). Ties go to the lower
index. z is piecewise constant in the scores and carries no gradient: that is what the layers add.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar, Literal

import torch
from torch import Tensor

from aimle import _library  # noqa: F401  (registers the ops)
from aimle._names import with_known_names
from aimle._settings import check_choice, check_int, check_tensor

_ops = torch.ops.aimle

# The `check` argument of the solver ops: which bad values raise. See aimle.solve.
CHECK_NOTHING, CHECK_DEFAULT, CHECK_ALL = 0, 1, 2


class Solver(ABC):
    """What every native solver is: frozen settings, a sense, and the size of an instance."""

    #: "max" if <scores, z> is maximised, "min" if scores are costs.
    sense: ClassVar[Literal["max", "min"]] = "max"
    #: How many trailing dimensions of scores belong to one instance.
    instance_dims: ClassVar[int] = 1
    #: Whether all solutions of an instance have the same number of ones.
    fixed_size: ClassVar[bool] = True
    #: The difference that AIMLE takes by default: central or forward.
    symmetric_perturbation: ClassVar[bool] = True

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        # The settings are left out: torch 2.11 hashes a solver made inside a compiled function
        # before it has any.
        return hash(type(self))

    @abstractmethod
    def _op(
        self, scores: Tensor, mask: Tensor | None, k: Tensor | int | None, check: int
    ) -> tuple[Tensor, Tensor]:
        """The op behind the solver."""

    def solve_rows(
        self,
        scores: Tensor,
        mask: Tensor | None = None,
        k: Tensor | int | None = None,
        check: int = CHECK_DEFAULT,
    ) -> tuple[Tensor, Tensor]:
        """z like scores, and a uint8 status of the batch shape."""
        check_tensor(type(self).__name__, "scores", scores)
        if mask is not None:
            check_tensor(type(self).__name__, "mask", mask)
        return self._op(scores, mask, k, check)

    @abstractmethod
    def layer_arguments(self) -> tuple[str, list[int]]:
        """`solver` and `solver_args` of the layer ops."""

    def __call__(
        self, scores: Tensor, *, mask: Tensor | None = None, k: Tensor | int | None = None
    ) -> Tensor:
        """Solve every instance.

        scores: [*batch, *instance], float32, float64, bfloat16 or float16.
        mask: bool, broadcastable to scores; entries that are False are never chosen.
        k: only for TopK; an int, or int64 broadcastable to *batch, in place of the solver's k.
        """
        return self.solve_rows(scores, mask, k)[0]


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
    if isinstance(solver, GridPath) and sense == "max":
        raise ValueError(
            f"[aimle.{owner}] expected sense='min' for GridPath, whose costs are never below zero, "
            "but got sense='max': give it costs, for example -scores.clamp(max=0) or "
            "softplus(-scores), and leave out sense"
        )
    own: Literal["max", "min"] = getattr(solver, "sense", "max")
    return sense or own


def _refuse_k(solver: Solver, k: object) -> None:
    if k is not None:
        raise TypeError(f"[aimle.{type(solver).__name__}] takes no k; only TopK does")


@with_known_names
@dataclass(frozen=True, eq=False)
class Argmax(Solver):
    """The one-hot vector of the largest score: [*batch, n] -> [*batch, n]. -inf is masked."""

    def layer_arguments(self) -> tuple[str, list[int]]:
        return "argmax", []

    def _op(
        self, scores: Tensor, mask: Tensor | None, k: Tensor | int | None, check: int
    ) -> tuple[Tensor, Tensor]:
        _refuse_k(self, k)
        return _ops.argmax.default(scores, mask, check)


@with_known_names
@dataclass(frozen=True, eq=False)
class TopK(Solver):
    """The indicator of the k largest scores: [*batch, n] -> [*batch, n], exactly k ones a row.

    -inf counts as masked. k may also be given per row, in the call.
    """

    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check_int("TopK", "k", self.k, 0))

    def layer_arguments(self) -> tuple[str, list[int]]:
        return "topk", [self.k]

    def _op(
        self, scores: Tensor, mask: Tensor | None, k: Tensor | int | None, check: int
    ) -> tuple[Tensor, Tensor]:
        if isinstance(k, Tensor):
            return _ops.topk.default(scores, self.k, mask, k, check)
        if k is not None and not isinstance(k, int | torch.SymInt):
            if not isinstance(k, Integral):
                raise TypeError(
                    f"[aimle.TopK] expected k to be an int or an int64 tensor but got {k!r}"
                )
            k = int(k)
        return _ops.topk.default(scores, self.k if k is None else k, mask, None, check)


@with_known_names
@dataclass(frozen=True, eq=False)
class SpanningTree(Solver):
    """The maximum spanning tree of the complete graph on n vertices.

    The last dimension of scores tells the layout: n(n-1)/2 undirected entries in the order (0,1),
    (0,2), ..., (1,2), ..., or n(n-1) directed ones, receiver-major, where the weight of {i, j} is
    the sum of both directions and z is written to both. Layers draw one noise for both directions,
    so that directed scores are the model of their sums (docs/deviations.md has the exception).
    """

    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", check_int("SpanningTree", "n", self.n, 1))

    def layer_arguments(self) -> tuple[str, list[int]]:
        return "spanning_tree", [self.n]

    def _op(
        self, scores: Tensor, mask: Tensor | None, k: Tensor | int | None, check: int
    ) -> tuple[Tensor, Tensor]:
        _refuse_k(self, k)
        return _ops.spanning_tree.default(scores, self.n, mask, check)


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

    sense: ClassVar[Literal["max", "min"]] = "min"
    instance_dims: ClassVar[int] = 2
    fixed_size: ClassVar[bool] = False
    symmetric_perturbation: ClassVar[bool] = False

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

    def layer_arguments(self) -> tuple[str, list[int]]:
        refuse = int(self.negative == "error")
        return "grid_path", [self.neighbourhood, *self.source, *self.target, refuse]

    def _op(
        self, scores: Tensor, mask: Tensor | None, k: Tensor | int | None, check: int
    ) -> tuple[Tensor, Tensor]:
        _refuse_k(self, k)
        return _ops.grid_path.default(
            scores, self.neighbourhood, self.source, self.target, self.negative, mask, check
        )
