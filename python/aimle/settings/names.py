"""Rejects unknown names of settings and suggests the nearest known name.

``known_names`` checks the keywords of a function or a constructor. ``SettingsModule`` is the base
class of all layers: their constructors are checked, and after construction, assigning an unknown
public attribute raises an error instead of being silently ignored.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, ParamSpec, TypeVar, get_args, get_type_hints

from torch import Tensor, nn

from aimle.settings.checks import check_assigned

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

_NO_NOTES: Mapping[str, str] = MappingProxyType({})
_NO_DEFAULTS: Mapping[str, Any] = MappingProxyType({})

_TEMPERATURE = ("temperature", "theta_noise_temperature")
# By the names here, the most likely one first: what other libraries (torch-imle,
# torch-adaptive-imle, PyEPO, perturbations) and the papers call them.
_OTHER_NAMES: dict[tuple[str, ...], str] = {
    ("nb_samples",): "n_samples num_samples samples number_of_samples s",
    _TEMPERATURE: "input_noise_temperature noise_temperature sigma tau",
    ("temperature",): "theta_noise_temperature",
    ("noise",): "noise_distribution distribution",
    ("lambda_", "target"): "lambd lambda lam",
    ("lambda_", "initial_alpha", "target"): "beta",
    ("initial_alpha", "target"): "initial_beta alpha",
    ("step", "target"): "beta_update_step eta",
    ("momentum", "target"): "beta_update_momentum",
    ("decay", "target"): "grad_norm_decay_rate gamma",
    ("target_norm", "target"): "c",
    ("target",): (
        "target_distribution lambda_ target_norm initial_alpha step decay alpha_range goal end"
    ),
    ("symmetric_perturbation", "difference"): "two_sides central symmetric",
    ("difference",): "symmetric_perturbation",
    ("sense",): "is_minimization maximize minimize maximise minimise",
    ("output",): "reduction",
    ("generator",): "seed",
    ("k",): "kappa",
    ("theta",): "pred_cost",
    ("true_theta",): "true_cost",
    ("solution",): "true_sol",
    ("neighbourhood",): "neighbours neighbors connectivity",
    ("source",): "start",
    ("n",): "vertices nodes num_nodes n_vertices",
    ("nb_iterations",): "num_iterations n_iterations",
}
_ALIASES = {other: ours for ours, others in _OTHER_NAMES.items() for other in others.split()}


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant."""
    known = [each for each in known if not each.startswith("_")]
    folded = name.lower().strip("_").replace("-", "_")
    for spelling in (name, folded):
        for meant in _ALIASES.get(spelling, ()):
            if meant in known:
                return meant
    close = difflib.get_close_matches(folded, known, n=1, cutoff=0.7)
    return close[0] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """'; did you mean ...?', or the list of known names."""
    known = list(known)
    nearest = nearest_name(name, known)
    if nearest is not None:
        return f"; did you mean {nearest!r}?"
    listed = ", ".join(each for each in known if not each.startswith("_"))
    return f"; it takes {listed}" if listed else "; it takes none"


def _spelled_out(function: Callable[..., Any], defaults: Mapping[str, Any]) -> inspect.Signature:
    """Its signature with the package's ``**settings: Unpack[...]`` expanded to parameters."""
    signature = inspect.signature(function)
    *others, last = signature.parameters.values()
    is_ours = function.__module__.startswith("aimle.")  # a user's subclass sees only what was given
    if not is_ours or not str(last.annotation).startswith("Unpack["):
        return signature
    (settings,) = get_args(get_type_hints(function)[last.name])
    unpacked = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=kind
        )
        for name, kind in get_type_hints(settings).items()
    ]
    return signature.replace(parameters=[*others, *unpacked])


def _keywords_of(signature: inspect.Signature) -> list[str] | None:
    """The names that a function takes as keywords; None if it takes any."""
    parameters = list(signature.parameters.values())
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    return [each.name for each in parameters if each.name != "self"]


def _refuse_unknown(
    owner: str, given: Iterable[str], known: list[str], notes: Mapping[str, str] = _NO_NOTES
) -> None:
    for name in given:
        if name not in known:
            hint = f"; {notes[name]}" if name in notes else did_you_mean(name, known)
            raise TypeError(f"[aimle.{owner}] got an unexpected keyword argument {name!r}{hint}")


def known_names(
    function: Callable[P, R], owner: str = "", notes: Mapping[str, str] = _NO_NOTES
) -> Callable[P, R]:
    """function with unknown keywords rejected by a TypeError that names the nearest known one.

    notes: messages for keywords that are known elsewhere but do not apply here.
    """
    known = _keywords_of(inspect.signature(function))
    if known is None:
        return function

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        _refuse_unknown(owner or function.__name__, kwargs, known, notes)
        return function(*args, **kwargs)

    return checked


def loss_names(function: Callable[P, R]) -> Callable[P, R]:
    """``known_names`` for a loss that returns one value per example."""
    note = "it returns a loss for every example: take the mean() or sum() of them"
    return known_names(function, notes={"reduction": note})


def with_known_names(cls: C) -> C:
    """Class decorator: checks the constructor's keywords as ``known_names`` does."""
    type.__setattr__(cls, "__init__", known_names(vars(cls)["__init__"], cls.__name__))
    return cls


class SettingsModule(nn.Module):
    """A module of settings; see above.

    Private names, buffers, parameters, submodules and whatever the class defines can be assigned as
    in any module, and anything in the constructor of a subclass.
    """

    __call__: Callable[..., Tensor]

    #: Messages for keywords that are known elsewhere but do not apply here.
    _notes: ClassVar[Mapping[str, str]] = _NO_NOTES
    #: The name in messages; that of the class unless it defines another.
    _owner: ClassVar[str]
    #: Defaults of settings taken as ``**settings: Unpack[...]``; None without an entry.
    _defaults: ClassVar[Mapping[str, Any]] = _NO_DEFAULTS

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._owner = vars(cls).get("_owner", cls.__name__)
        if "__init__" not in vars(cls):
            return
        init = vars(cls)["__init__"]
        written, signature = inspect.signature(init), _spelled_out(init, cls._defaults)
        known = _keywords_of(signature)
        parameters = signature.parameters
        unpacked = {
            name: parameters[name].default for name in parameters.keys() - written.parameters
        }

        @functools.wraps(init)
        def sealing(self: SettingsModule, *args: Any, **settings: Any) -> None:
            if known is not None:
                _refuse_unknown(self._owner, settings, known, self._notes)
            init(self, *args, **{**unpacked, **settings})
            if type(self).__init__ is sealing:  # not that of a base class
                self.__dict__["_sealed"] = True
                self._setting_changed("")

        sealing.__signature__ = signature  # type: ignore[attr-defined]
        type.__setattr__(cls, "__init__", sealing)

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__dict__.get("_sealed"):
            self._refuse_assignment(name, value)
            check_assigned(self._owner, name, value)
        super().__setattr__(name, value)
        if self.__dict__.get("_sealed"):
            self._setting_changed(name)

    def _refuse_assignment(self, name: str, value: object) -> None:
        """Raises an error that says what to do if the attribute cannot be assigned."""
        owner = f"[aimle.{self._owner}]"
        of_class = getattr(type(self), name, None)
        if isinstance(of_class, property) and of_class.fset is None:
            raise AttributeError(f"{owner} {name} cannot be changed: make a new layer")
        if name in self._buffers and not isinstance(value, Tensor | None):
            raise TypeError(
                f"{owner} expected {name} to be a tensor but got {type(value).__name__}: "
                f"layer.{name}.fill_({value!r}) changes its value"
            )
        if not self._may_assign(name, value):
            hint = did_you_mean(name, self._assignable())
            raise AttributeError(
                f"{owner} has no setting {name!r}{hint} "
                "(for your own attributes, use a name with a leading underscore)"
            )

    def _setting_changed(self, name: str) -> None:
        """Called after construction and after an attribute was assigned."""

    def _may_assign(self, name: str, value: object) -> bool:
        return (
            name.startswith("_")
            or name in self.__dict__
            or name in self._buffers
            or name in self._parameters
            or name in self._modules
            or hasattr(type(self), name)
            or isinstance(value, nn.Module | nn.Parameter)
        )

    def _assignable(self) -> list[str]:
        """The settings that can be assigned."""
        properties = [
            name
            for name, value in inspect.getmembers(type(self))
            if isinstance(value, property) and value.fset is not None
        ]
        names = {*vars(self), *properties} - {"training"}
        return sorted(name for name in names if not name.startswith("_"))
