"""SciPy's assignment and mixed-integer programs (HiGHS)."""

import contextlib
import reprlib
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from aimle.adapters._shared import adapted, finite, needed
from aimle.black_box import PerInstance, per_instance
from aimle.settings.checks import check_choice, check_type


class _Assign:
    """A matching of the rows and columns of a matrix."""

    def __init__(self, maximize: bool) -> None:
        self._maximize = maximize

    def __call__(self, scores: NDArray) -> NDArray:
        solve = needed(
            "from_linear_sum_assignment", "scipy.optimize", "scipy"
        ).linear_sum_assignment
        z = np.zeros(scores.shape, dtype=np.bool_)
        z[solve(finite(scores), maximize=self._maximize)] = True
        return z


def from_linear_sum_assignment(
    *, sense: Literal["max", "min"] = "max", **settings: Any
) -> PerInstance:
    """``scipy.optimize.linear_sum_assignment``: scores [n, m] -> a maximum matching, 0 or 1.

    settings: those of ``aimle.per_instance``. ``aimle.Assignment`` is native and faster.
    """
    needed("from_linear_sum_assignment", "scipy.optimize", "scipy")
    check_choice("from_linear_sum_assignment", "sense", sense, ("max", "min"))
    fn = _Assign(sense == "max")
    return per_instance(fn, sense=sense, instance_dims=2, fixed_size=True, **settings)


class _Program:
    """A mixed-integer linear program whose objective is set per instance."""

    def __init__(self, maximize: bool, arguments: dict[str, Any]) -> None:
        self._sign = -1.0 if maximize else 1.0
        self._arguments = arguments

    def __call__(self, scores: NDArray) -> NDArray:
        milp = needed("from_milp", "scipy.optimize", "scipy").milp
        found = milp(self._sign * finite(scores), **self._arguments)
        if found.x is None:
            raise RuntimeError(f"milp found no solution: {found.message}")
        return found.x


def _constraints(optimize: Any, given: Any) -> Any:
    """Constraints in any form that milp takes: one, a list of them, or (A, lower, upper)."""
    kind = optimize.LinearConstraint
    if given is None or isinstance(given, kind):
        return given
    with contextlib.suppress(TypeError, ValueError):
        if len(given) == 3:
            return kind(*given)
    with contextlib.suppress(TypeError, ValueError):
        return [each if isinstance(each, kind) else kind(*each) for each in given]
    raise TypeError(
        "[aimle.from_milp] expected constraints to be a scipy.optimize.LinearConstraint, or a list "
        f"of them, but got {reprlib.repr(given)}"
    )


def _bounds(optimize: Any, given: Any) -> Any:
    if given is None or isinstance(given, optimize.Bounds):
        return given
    try:
        lower, upper = (np.asarray(each, dtype=np.float64) for each in given)
    except (TypeError, ValueError):
        raise TypeError(
            "[aimle.from_milp] expected bounds to be (lower, upper) or a scipy.optimize.Bounds but "
            f"got {reprlib.repr(given)}"
        ) from None
    return optimize.Bounds(lower, upper)


def _check_integrality(given: Any) -> None:
    with contextlib.suppress(ValueError):  # for nested lists of several lengths
        if given is None or np.isin(np.asarray(given), (0, 1, 2, 3)).all():
            return
    raise ValueError(
        "[aimle.from_milp] expected integrality to be 0, 1, 2 or 3, or one of them for every "
        f"score, but got {reprlib.repr(given)}"
    )


def from_milp(
    constraints: Any,
    *,
    bounds: Any = (0, 1),
    integrality: Any = 1,
    options: dict[str, Any] | None = None,
    sense: Literal["max", "min"] = "max",
    **settings: Any,
) -> PerInstance:
    """``scipy.optimize.milp``: scores [n] -> the x with the best <scores, x>, by HiGHS.

    Args:
        constraints: ``scipy.optimize.LinearConstraint``, or a list of them, as for ``milp``.
        bounds: (lower, upper) or ``scipy.optimize.Bounds``; 0 and 1 by default.
        integrality: as for ``milp``; 1: whole numbers. With 0, also set ``fractional=True``.
        options: as for ``milp``, such as ``{"time_limit": 1.0, "mip_rel_gap": 0.01}``. A solution
            found within the time limit is used even if it was not proved optimal.
    settings: those of ``aimle.per_instance``.
    """
    optimize = needed("from_milp", "scipy.optimize", "scipy")
    _check_integrality(integrality)
    check_type("from_milp", options, dict | None, "options to be a dict or None")
    check_choice("from_milp", "sense", sense, ("max", "min"))
    arguments = {
        "constraints": _constraints(optimize, constraints),
        "bounds": _bounds(optimize, bounds),
        "integrality": integrality,
        "options": options,
    }
    fn = _Program(sense == "max", arguments)
    return adapted(fn, sense=sense, instance_dims=1, **settings)
