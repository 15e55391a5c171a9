"""The CSV file of finished runs: one row per run, replaced atomically."""

from __future__ import annotations

import csv
import fcntl
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path

Key = tuple[str, str, str, str, str, int]


@dataclass(frozen=True)
class Row:
    """One finished run. `solver_calls` counts training only, 0 for methods without a solver."""

    task: str
    data: str
    length: str
    method: str
    setting: str
    seed: int
    metric: str
    value: float
    steps: int
    solver_calls: int
    seconds: float
    commit: str
    device: str

    @property
    def key(self) -> Key:
        """What identifies the run: a second run of the same key replaces the row."""
        return (self.task, self.data, self.length, self.method, self.setting, self.seed)


_COLUMNS = [field.name for field in fields(Row)]
_TYPES: dict[str, Callable[[str], object]] = {
    "seed": int,
    "steps": int,
    "solver_calls": int,
    "value": float,
    "seconds": float,
}


def _parse(line: dict[str, str]) -> Row:
    return Row(**{name: _TYPES.get(name, str)(line[name]) for name in _COLUMNS})  # type: ignore[arg-type]


def _spell(row: Row) -> dict[str, object]:
    return {**asdict(row), "value": f"{row.value:.6g}", "seconds": f"{row.seconds:.1f}"}


class Results:
    """The rows of a file. Several processes may add rows to the same file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def read(self) -> list[Row]:
        """All rows; none if the file does not exist. Raises ValueError if it is not such a file."""
        if not self.file.exists():
            return []
        reader = csv.DictReader(io.StringIO(self.file.read_text()))
        if reader.fieldnames != _COLUMNS:
            raise ValueError(
                f"{self.file}: expected the columns {','.join(_COLUMNS)} but got "
                f"{','.join(reader.fieldnames or [])}; remove or rename the file"
            )
        return [_parse(line) for line in reader]

    def add(self, row: Row) -> None:
        """Adds the row; replaces an earlier one of the same run."""
        with self._locked():
            rows = [other for other in self.read() if other.key != row.key]
            self._write([*rows, row])

    def create(self) -> None:
        """Creates a file without rows if it does not exist."""
        self.remove(lambda _: False)

    def remove(self, unwanted: Callable[[Row], bool]) -> None:
        """Removes the rows for which the function is true."""
        with self._locked():
            self._write([row for row in self.read() if not unwanted(row)])

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(self.file.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def _write(self, rows: list[Row]) -> None:
        text = io.StringIO()
        writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(_spell(row) for row in rows)
        unfinished = self.file.with_suffix(".new")
        with unfinished.open("w") as file:
            file.write(text.getvalue())
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self.file)
