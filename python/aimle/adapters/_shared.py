"""What the adapters share."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: What is known of solutions of which nothing is known: they may have more ones or fewer.
VARIES: dict[str, Any] = {"fixed_size": False}


def finite(scores: NDArray) -> NDArray:
    """The scores in float64, infinite ones as finite ones beyond all others together."""
    scores = np.asarray(scores, dtype=np.float64)
    infinite = np.isinf(scores)
    if not infinite.any():
        return scores
    beyond = 1.0 + 2.0 * np.abs(scores[~infinite]).sum()
    return np.where(infinite, np.copysign(beyond, scores), scores)


def needed(owner: str, module: str, extra: str) -> Any:
    """A module of an optional dependency; ImportError with the remedy."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"[aimle.{owner}] needs {module.partition('.')[0]}: pip install aimle[{extra}]"
        ) from error
