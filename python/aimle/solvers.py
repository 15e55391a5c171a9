"""The base class of native solvers, and lookup of solvers by name.

A solver is called with scores ``[*batch, *instance]`` and returns z of the same shape and dtype,
whose entries are exactly 0 or 1. z maximises <scores, z> (for solvers of costs: minimises it). z is
piecewise constant in the scores and carries no gradient; the layers add one. The structures are
in structures.py and graph_paths.py.
"""

import dataclasses
import json
import os
from functools import cache
from numbers import Integral
from typing import Any, ClassVar, Literal, TypeVar

import torch
from torch import Tensor, nn
from typing_extensions import dataclass_transform

from aimle import _library  # noqa: F401  (registers the ops)
from aimle.settings.checks import (
    check_bool,
    check_choice,
    check_int,
    check_tensor,
    check_type,
    refuse_type,
)
from aimle.settings.names import SettingsModule, with_known_names

_ops = torch.ops.aimle
_solve = _ops.solve.default

Sense = Literal["max", "min"]

# The types of what a call takes besides scores; k may differ between rows.
Mask = Tensor | None
K = Tensor | int | None
Data = Tensor | None
Key = Tensor | None

# The `check` argument of the solver ops: which bad values raise an error. See aimle.solve.
CHECK_NOTHING, CHECK_DEFAULT, CHECK_ALL = 0, 1, 2


class Solver:
    """Base class of native solvers: frozen settings, a sense, and the size of an instance.

    The class attributes come from the solver's C++ declaration (aimle/registry/register_solver.h).
    """

    #: Its name in the registry, in the text form and on the command line.
    name: ClassVar[str]
    #: "max" if <scores, z> is maximised, "min" if scores are costs.
    sense: ClassVar[Sense]
    #: How many trailing dimensions of scores belong to one instance.
    instance_dims: ClassVar[int]
    #: Whether all solutions of an instance have the same number of ones.
    fixed_size: ClassVar[bool]
    #: Whether scores are costs, which must not be below zero.
    has_costs: ClassVar[bool]
    #: Whether k can be given per row.
    takes_k: ClassVar[bool]
    #: Whether instances have data besides their scores, such as weights or a graph.
    takes_data: ClassVar[bool]
    #: Whether its structures can be listed (aimle.exact.structures).
    lists: ClassVar[bool]
    #: Whether every entry has a threshold (aimle.Thresholds).
    has_thresholds: ClassVar[bool]
    #: Whether it has an exact distribution in closed form (aimle.exact).
    has_exact: ClassVar[bool]
    #: The default noise of layers, by name, and its temperature.
    default_noise: ClassVar[str]
    default_temperature: ClassVar[float]

    #: The text form that ops take, for example "topk:k=5".
    text: str
    #: The data besides the scores, int64 [length], for solvers that take data.
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

    def __repr__(self) -> str:
        """The settings that are not the defaults: of a chain, no length that scores will give."""
        values = {each: getattr(self, each.name) for each in dataclasses.fields(self)}  # type: ignore[arg-type]
        given = [
            f"{each.name}={value!r}"
            for each, value in values.items()
            if isinstance(value, Tensor) or value != each.default
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    def __hash__(self) -> int:
        # The settings are left out: torch 2.11 hashes a solver created inside a compiled function
        # before its settings are assigned.
        return hash(type(self))

    def _text(self) -> str:
        settings = [
            f"{field.name}={_setting_text(getattr(self, field.name))}"
            for field in dataclasses.fields(self)  # type: ignore[arg-type]
            if not field.metadata.get("data")
        ]
        return f"{self.name}:{','.join(settings)}" if settings else self.name

    def text_for(self, owner: str, k: Tensor | int | None) -> str:
        """The text form for a call with this k, which overrides the solver's own if it is an int.

        Raises TypeError if the solver does not take k.
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
        if not isinstance(k, Integral | torch.SymInt) or isinstance(k, bool):
            raise TypeError(
                f"[aimle.{owner}] expected k to be an int >= 0 or an int64 tensor but got {k!r}, "
                f"a {type(k).__name__}" + (": pass torch.as_tensor(k)" * hasattr(k, "__len__"))
            )
        return dataclasses.replace(self, k=check_int(owner, "k", int(k), 0)).text

    def data_on(self, device: torch.device) -> Tensor:
        """The solver's own data on that device, copied once."""
        assert self.data is not None
        if device == self.data.device:
            return self.data
        if torch.compiler.is_compiling():
            return self.data.to(device)
        copies: dict[torch.device, Tensor] = self.__dict__.setdefault("_copies", {})
        if device not in copies:
            with torch.inference_mode(False):  # a later call may need it for backward
                copy = self.data.to(device)
            if type(copy) is not Tensor:  # fake
                return copy
            copies[device] = copy
        return copies[device]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_copies"}

    def row_arguments(
        self, owner: str, scores: Tensor, k: K, data: Data
    ) -> tuple[str, Tensor | None]:
        """The text form for a call, and the tensor with the data of its instances: k or data.

        Raises TypeError for an argument that the solver does not take, or that is missing.
        """
        if self.takes_data:
            given = self.data if data is None else data
            if given is None:
                raise TypeError(
                    f"[aimle.{owner}] {type(self).__name__} needs data, int64 [length] or "
                    "[*batch, length]: pass data=... to the solver or to the call"
                )
            check_tensor(owner, "data", given)
            if data is None:
                given = self.data_on(scores.device)
            return self.text_for(owner, k), given
        if data is not None:
            raise TypeError(f"[aimle.{owner}] {type(self).__name__} takes no data")
        return self.text_for(owner, k), k if isinstance(k, Tensor) else None

    def solve_rows(
        self,
        scores: Tensor,
        mask: Mask = None,
        k: K = None,
        check: int = CHECK_DEFAULT,
        data: Data = None,
    ) -> tuple[Tensor, Tensor]:
        """z like scores, and a uint8 status of the batch shape."""
        owner = type(self).__name__
        check_tensor(owner, "scores", scores)
        if mask is not None:
            check_tensor(owner, "mask", mask)
        text, row_data = self.text, None
        if k is not None or data is not None or self.takes_data:
            text, row_data = self.row_arguments(owner, scores, k, data)
        return _solve(scores, text, mask, row_data, check)

    def __call__(
        self, scores: Tensor, *, mask: Mask = None, k: K = None, data: Data = None
    ) -> Tensor:
        """Solve every instance.

        scores: [*batch, *instance], float32, float64, bfloat16 or float16.
        mask: bool, broadcastable to scores; entries that are False are never chosen.
        k: only for solvers that take it (TopK); an int, or int64 broadcastable to *batch; overrides
            the solver's k.
        data: only for solvers that take it; int64 [length] or broadcastable to [*batch, length];
            overrides the solver's own data.
        """
        return self.solve_rows(scores, mask, k, data=data)[0]


def _setting_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ":".join(map(str, value)) if isinstance(value, tuple) else str(value)


def declarations() -> dict[str, dict[str, Any]]:
    """The declarations of all solvers by name: summary, settings and capabilities."""
    return {one["name"]: one for one in json.loads(_ops.solvers.default())}


_CLASSES: dict[str, type[Solver]] = {}
_AnySolver = TypeVar("_AnySolver", bound=type[Solver])


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(dataclasses.field,))
def declared(cls: _AnySolver) -> _AnySolver:
    """A frozen dataclass of settings, with the class attributes of the C++ declaration, and
    registered with ``aimle.solver``."""
    dataclasses.dataclass(frozen=True, eq=False)(cls)  # in place
    _CLASSES[cls.name] = with_known_names(cls)
    return _described(cls)


def _described(cls: _AnySolver) -> _AnySolver:
    known = declarations()[cls.name]
    cls.sense = known["sense"]
    cls.instance_dims = known["instance_dims"]
    cls.fixed_size = known["fixed_size"]
    cls.has_costs = known["has_costs"]
    cls.takes_k = known["takes_k"]
    cls.takes_data = known["takes_data"]
    cls.lists = known["lists"]
    cls.has_thresholds = known["thresholds"]
    cls.has_exact = known["exact"]
    cls.default_noise = known["noise"]
    cls.default_temperature = known["temperature"]
    cls.__repr__ = Solver.__repr__  # type: ignore[method-assign]  # in place of the dataclass's
    return cls


def solver(name: str, **settings: Any) -> Solver:
    """Creates a solver by name, from the library or from a loaded library.

        aimle.solver("topk", k=3)                               # aimle.TopK(k=3)
        aimle.solver("viterbi", length=12, labels=5)            # a custom one: aimle.load_library

    A cell of a grid is a pair (row, column). ``aimle.solver_names()`` lists the names.
    """
    check_type("solver", name, str, "name to be a str")
    if name in _CLASSES:
        return _CLASSES[name](**settings)
    if name not in solver_names():
        _ops.solver_text.default(name)  # raises a ValueError that lists the known names
    return _class_of(name)(**settings)


def solver_of_text(text: str, data: Tensor | None = None) -> Solver:
    """The solver for a text such as "topk:k=5", with its data, int64 [length], if it takes some.

    With data, the result is not an instance of the class that builds data, for example from a
    graph.
    """
    text = _ops.solver_text.default(text)  # checked, with all settings named
    name, _, rest = text.partition(":")
    cls = _class_of(name) if data is not None or name not in _CLASSES else _CLASSES[name]
    made = cls.__new__(cls)
    settings = dict(part.split("=", 1) for part in rest.split(",") if part)
    values = {key: _setting_value(value) for key, value in settings.items()} | {"text": text}
    for key, value in (values if data is None else values | {"data": data}).items():
        object.__setattr__(made, key, value)
    return made


def _setting_value(text: str) -> Any:
    """The inverse of _setting_text."""
    if ":" in text:
        return tuple(map(int, text.split(":")))
    try:
        return int(text)
    except ValueError:
        return {"false": False, "true": True}.get(text, text)


def solver_names() -> list[str]:
    """The names of all solvers, built-in ones first."""
    return list(declarations())


def load_library(path: str | os.PathLike[str]) -> list[str]:
    """Loads a library of custom solvers and returns the names of the solvers it added.

    See examples/custom_solver. Loading a library twice has no effect. Raises OSError if it cannot
    be loaded, and ValueError if one of its solvers is rejected, for example because its name is
    already taken.
    """
    check_type("load_library", path, str | os.PathLike, "path to be a path")
    path = os.fspath(path)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"[aimle.load_library] there is no file {path}")
    try:
        return _ops.load_library.default(path)
    except RuntimeError as error:
        raise OSError(str(error).replace("aimle::", "aimle.", 1)) from error


@cache
def _class_of(name: str) -> type[Solver]:
    """A class for a solver without a Python class, made from its declaration."""
    known = declarations()[name]
    fields: list[Any] = []
    for setting in known["settings"]:
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
    fields.sort(key=len)  # required ones first

    def check(self: Solver) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            plain = value.tolist() if hasattr(value, "tolist") else value  # NumPy scalars
            if isinstance(plain, bool) or not isinstance(plain, int | str | tuple | list):
                refuse_type(name, f"{field.name} to be an int, a pair of ints or a word", value)
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
            "__doc__": known["summary"],
            "__post_init__": check,
            "__reduce__": lambda self: (solver_of_text, (self.text, self.data)),
        },
    )
    _CLASSES.setdefault(name, cls)
    return _described(with_known_names(cls))


def refuse_class_or_layer(owner: str, name: str, given: object) -> None:
    """Raises TypeError for a class of solvers or layers, and for a layer, in place of a solver."""
    if isinstance(given, type) and issubclass(given, Solver | nn.Module):
        raise TypeError(
            f"[aimle.{owner}] expected {name} to be a solver such as aimle.TopK(k=3) but got the "
            f"class {given.__name__} itself"
        )
    if isinstance(given, SettingsModule):
        raise TypeError(
            f"[aimle.{owner}] expected {name} to be a solver such as aimle.TopK(k=3) but got the "
            f"layer {type(given).__name__}: pass its solver, layer.solver"
        )


def check_solver(owner: str, solver: object) -> None:
    """Raises TypeError unless solver is a native solver or a callable."""
    refuse_class_or_layer(owner, "solver", solver)
    if not callable(solver):
        hint = f" {solver!r}: aimle.solver makes one by name" if isinstance(solver, str) else ""
        expected = "solver to be a native solver such as aimle.TopK(k=3) or a callable"
        refuse_type(owner, expected, solver, hint)


def checked_dims(
    owner: str,
    solver: object,
    instance_dims: int | None,
    fractional: bool | None,
    repeat_arguments: bool = False,
) -> int | None:
    """instance_dims, checked; raises TypeError for settings that only callables take."""
    if instance_dims is not None:
        instance_dims = check_int(owner, "instance_dims", instance_dims, 1)
    if fractional is not None:
        check_bool(owner, "fractional", fractional)
    check_bool(owner, "repeat_arguments", repeat_arguments)
    if isinstance(solver, Solver):
        given = {"fractional": fractional, "repeat_arguments": repeat_arguments}
        unwanted = [f"{name}={value!r}" for name, value in given.items() if value]
        if instance_dims not in (None, solver.instance_dims):
            unwanted.append(f"instance_dims={instance_dims}")
        if unwanted:
            raise TypeError(
                f"[aimle.{owner}] {type(solver).__name__} defines its own instances; only a "
                f"callable solver takes {', '.join(unwanted)}"
            )
    return instance_dims


def resolve_sense(owner: str, solver: object, sense: Sense | None) -> Sense:
    """The sense in which a layer uses its solver: the given one, or the solver's own.

    Raises ValueError for a sense that the solver does not support.
    """
    check_choice(owner, "sense", sense, (None, "max", "min"))
    if isinstance(solver, Solver) and solver.has_costs and sense == "max":
        raise ValueError(
            f"[aimle.{owner}] expected sense='min' for {type(solver).__name__}, whose costs are "
            "never below zero, but got sense='max': give it costs, for example "
            "-scores.clamp(max=0) or softplus(-scores), and leave out sense"
        )
    own: Sense = getattr(solver, "sense", "max")
    return sense or own
