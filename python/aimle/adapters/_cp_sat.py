"""OR-Tools' CP-SAT."""

import reprlib
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from aimle.adapters._shared import OneAtATime, adapted, finite, needed
from aimle.black_box import PerInstance
from aimle.settings.checks import check_choice, check_type


def _cp_model() -> Any:
    return needed("from_cp_sat", "ortools.sat.python.cp_model", "ortools")


class _Model:
    """A CP-SAT model whose linear objective over some of its variables is set per instance.

    It is pickled as the text of its protocol buffer.
    """

    def __init__(
        self, model: Any, indices: list[int], maximize: bool, parameters: dict[str, Any]
    ) -> None:
        self._model, self._indices = model, indices
        self._maximize, self._parameters = maximize, parameters

    def __call__(self, scores: NDArray) -> NDArray:
        cp_model = _cp_model()
        variables = [self._model.get_int_var_from_proto_index(i) for i in self._indices]
        objective = cp_model.LinearExpr.weighted_sum(variables, finite(scores).tolist())
        (self._model.maximize if self._maximize else self._model.minimize)(objective)
        solver = cp_model.CpSolver()
        for name, value in self._parameters.items():
            setattr(solver.parameters, name, value)
        status = solver.solve(self._model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            raise RuntimeError(f"CP-SAT found no solution: {solver.status_name(status)}")
        return np.array([solver.value(each) for each in variables])

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_model": str(self._model.proto)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._model = _cp_model().CpModel()
        self._model.proto.parse_text_format(state["_model"])


def _variables(cp_model: Any, given: Any) -> list[Any]:
    """The variables as a list; raises TypeError if they are not those of a model."""
    variables = list(given) if isinstance(given, Iterable) else [given]
    wrong = [each for each in variables if not isinstance(each, cp_model.IntVar)]
    if wrong or not isinstance(given, Iterable):
        raise TypeError(
            "[aimle.from_cp_sat] expected variables to be a sequence of variables of the model but "
            f"got {reprlib.repr(given)}"
        )
    return variables


def from_cp_sat(
    model: Any,
    variables: Sequence[Any],
    *,
    sense: Literal["max", "min"] = "max",
    parameters: dict[str, Any] | None = None,
    **settings: Any,
) -> PerInstance:
    """A solver from an OR-Tools CP-SAT model: scores [n] -> the values of n of its variables.

    Args:
        model: a ``CpModel`` with variables and constraints; its objective is replaced by
            <scores, variables>. The model is copied.
        variables: the variables to which the scores belong, in order.
        parameters: solver parameters, such as ``{"max_time_in_seconds": 1.0}``. By default one
            thread and a fixed seed, so that results are reproducible. A solution found within the
            time limit is used even if it was not proved optimal.
    settings: those of ``aimle.per_instance``.
    """
    cp_model = _cp_model()
    check_type("from_cp_sat", model, cp_model.CpModel, "model to be a CpModel of OR-Tools")
    variables = _variables(cp_model, variables)
    check_type("from_cp_sat", parameters, dict | None, "parameters to be a dict or None")
    check_choice("from_cp_sat", "sense", sense, ("max", "min"))
    parameters = {"num_workers": 1, "random_seed": 0, **(parameters or {})}
    indices = [each.index for each in variables]
    fn = _Model(model.clone(), indices, sense == "max", parameters)
    return adapted(OneAtATime(fn), sense=sense, instance_dims=1, **settings)
