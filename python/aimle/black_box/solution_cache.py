"""Known solutions that answer a share of the solves, like PyEPO's ``solve_ratio``."""

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray


class SolutionCache:
    """The last `size` solutions seen, for each instance shape.

    Which rows it answers is derived from the number of the call, not from PyTorch's generator, so
    it is the same in every run, and the noise is the same with and without the cache.
    """

    def __init__(self, share: float, size: int, sense: str) -> None:
        self.share, self.size, self.sense = share, size, sense
        self._known: dict[tuple[int, ...], OrderedDict[bytes, NDArray]] = {}
        self._calls = 0

    def rows(self, count: int, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """Which rows of a call the cache should answer; none while it is empty."""
        self._calls += 1
        if not self._known.get(shape):
            return np.zeros(count, dtype=np.bool_)
        return np.random.default_rng(self._calls).random(count) < self.share

    def add(self, solution: NDArray) -> None:
        if np.isnan(solution).any():
            return
        known = self._known.setdefault(solution.shape, OrderedDict())
        known[solution.tobytes()] = solution
        known.move_to_end(solution.tobytes())
        if len(known) > self.size:
            known.popitem(last=False)

    def best(self, scores: NDArray) -> tuple[NDArray, NDArray[np.bool_]]:
        """For every row the best known solution of <scores, z>, and whether there is one.

        Solutions with forbidden entries (-inf, or +inf for costs) are excluded.
        """
        known = np.stack(list(self._known[scores.shape[1:]].values()))
        flat = scores.reshape(len(scores), -1).astype(np.float64)
        choices = known.reshape(len(known), -1).astype(np.float64)
        if self.sense == "min":
            flat = -flat
        forbidden = np.isneginf(flat)
        answerable = ~(np.isnan(flat) | np.isposinf(flat)).any(1)
        with np.errstate(invalid="ignore"):
            values = np.where(forbidden, 0.0, flat) @ choices.T
        values[forbidden.astype(np.float64) @ (choices != 0).T.astype(np.float64) > 0] = -np.inf
        values[np.isnan(values)] = -np.inf
        best = values.argmax(1)
        found = answerable & np.isfinite(values[np.arange(len(values)), best])
        return known[best], found
