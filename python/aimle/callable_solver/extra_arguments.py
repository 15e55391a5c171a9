"""Extra arguments of a call, which are passed to a callable solver: per row or shared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor


def _has_entries(value: object) -> bool:
    """Whether the argument can have an entry per example: tensors, arrays and lists."""
    if isinstance(value, Tensor | np.ndarray):
        return value.ndim > 0
    return isinstance(value, list)


@dataclass(frozen=True)
class ExtraArguments:
    """Positional and keyword arguments; by_row: tensors, arrays and lists have an entry per row."""

    args: tuple
    kwargs: dict[str, Any]
    by_row: bool = False

    @property
    def can_be_split(self) -> bool:
        """Whether the entries of some of the rows can be selected."""
        return self.by_row or not (self.args or self.kwargs)

    def repeated(self, owner: str, batch: torch.Size, samples: int) -> ExtraArguments:
        """Entries [*batch, ...] as rows [B S, ...], example-major; raises ValueError otherwise."""

        def repeat(name: str, value: Any) -> Any:
            if not _has_entries(value):
                return value
            _check_batch_of(owner, name, value, batch)
            if isinstance(value, list):
                return [entry for entry in value for _ in range(samples)]
            rows = value.reshape(-1, *value.shape[len(batch) :])
            if isinstance(rows, Tensor):
                return rows.repeat_interleave(samples, 0)
            return rows.repeat(samples, 0)

        return self.each(repeat)

    def of_rows(self, rows: Tensor) -> ExtraArguments:
        """The arguments of some of the rows."""
        if not self.by_row:
            return self
        return self.each(lambda _, value: _rows_of(value, rows))

    def each(self, change: Callable[[str, Any], Any]) -> ExtraArguments:
        """Arguments by row, from their names and values."""
        args = tuple(change(f"number {i}", value) for i, value in enumerate(self.args))
        kwargs = {name: change(repr(name), value) for name, value in self.kwargs.items()}
        return ExtraArguments(args, kwargs, by_row=True)


def _rows_of(value: Any, rows: Tensor) -> Any:
    if not _has_entries(value):
        return value
    if isinstance(value, list):
        return [value[row] for row in rows.tolist()]
    if isinstance(value, np.ndarray):
        return value[rows.cpu().numpy()]
    return value[rows.to(value.device)]


def _check_batch_of(owner: str, name: str, value: Any, batch: torch.Size) -> None:
    shape = (len(value),) if isinstance(value, list) else tuple(value.shape)
    if shape[: len(batch)] != tuple(batch) and not (
        isinstance(value, list) and len(value) == batch.numel()
    ):
        raise ValueError(
            f"[aimle.{owner}] repeat_arguments=True expects the extra argument {name} to have an "
            f"entry for every example, {[*batch, '...']}, but got shape {list(shape)}: bind what "
            "all examples share to the solver with functools.partial"
        )
