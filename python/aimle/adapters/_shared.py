"""Helpers shared by the adapters."""

import importlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aimle.black_box import PerInstance, per_instance


class OneAtATime:
    """A function that sets the objective of a shared model: threads take turns."""

    def __init__(self, fn: Callable[[NDArray], NDArray]) -> None:
        self._fn, self._lock = fn, threading.Lock()

    def __call__(self, scores: NDArray) -> NDArray:
        with self._lock:
            return self._fn(scores)

    def __reduce__(self) -> tuple:
        return OneAtATime, (self._fn,)


def adapted(fn: Callable[..., Any], **settings: Any) -> PerInstance:
    """A solver whose solutions may vary in size, which its layers find out, unless
    ``fixed_size`` is given."""
    solver = per_instance(fn, **settings)
    if not hasattr(solver, "fixed_size"):
        solver.fixed_size = None
    return solver


def finite(scores: NDArray) -> NDArray:
    """The scores in float64; infinite ones become finite ones that outweigh all others."""
    scores = np.asarray(scores, dtype=np.float64)
    infinite = np.isinf(scores)
    if not infinite.any():
        return scores
    beyond = 1.0 + 2.0 * np.abs(scores[~infinite]).sum()
    return np.where(infinite, np.copysign(beyond, scores), scores)


def needed(owner: str, module: str, extra: str) -> Any:
    """Imports an optional dependency; raises ImportError with the remedy."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"[aimle.{owner}] needs {module.partition('.')[0]}: pip install aimle[{extra}]"
        ) from error
