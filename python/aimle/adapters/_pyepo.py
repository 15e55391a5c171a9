"""PyEPO's optimisation models."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from aimle.adapters._shared import OneAtATime, adapted, finite
from aimle.black_box import PerInstance
from aimle.settings.checks import refuse_type

_SENSES: dict[int, Literal["max", "min"]] = {1: "min", -1: "max"}


class _Model:
    """A PyEPO model as a function of one cost vector.

    Most backends' models cannot be pickled: instead PyEPO's own recipe is pickled, with the
    constraints that were added later.
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    def __call__(self, costs: NDArray) -> NDArray:
        self._model.setObj(finite(costs).astype(costs.dtype))
        solution, _ = self._model.solve()
        return np.asarray(solution)

    def __getstate__(self) -> dict[str, Any]:
        if not hasattr(self._model, "to_spec"):
            return {"model": self._model}
        added = list(getattr(self._model, "_extra_constrs", []))
        return {"recipe": self._model.to_spec(), "added": added}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "model" in state:
            self._model = state["model"]
            return
        self._model = state["recipe"].build()
        for coefficients, bound in state["added"]:
            self._model = self._model.addConstr(coefficients, bound)


def _sense(model_sense: Any) -> Literal["max", "min"]:
    try:
        return _SENSES[int(model_sense)]
    except (TypeError, ValueError, KeyError):
        raise ValueError(
            "[aimle.from_pyepo] expected the model's modelSense to be 1 (min) or -1 (max) but got "
            f"{model_sense!r}"
        ) from None


def from_pyepo(optmodel: Any, **settings: Any) -> PerInstance:
    """A solver from a PyEPO model: any object with setObj(costs), solve() and modelSense.

    The sense is that of the model. settings: those of ``aimle.per_instance``. A relaxed model, or
    one whose variables are not whole numbers, needs ``fractional=True``.
    """
    missing = [name for name in ("setObj", "solve", "modelSense") if not hasattr(optmodel, name)]
    if missing:
        hint = f", which has no {', '.join(missing)}"
        refuse_type("from_pyepo", "optmodel to be a PyEPO model", optmodel, hint)
    if isinstance(optmodel, type):
        raise TypeError(
            "[aimle.from_pyepo] expected optmodel to be a PyEPO model but got the class "
            f"{optmodel.__name__} itself"
        )
    if "sense" not in settings:
        settings["sense"] = _sense(optmodel.modelSense)
    return adapted(OneAtATime(_Model(optmodel)), instance_dims=1, **settings)
