"""CSV files of finished runs: one row per run, replaced atomically."""

import csv
import fcntl
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Generic, TypeVar, get_type_hints

from aimle._files import write_atomically

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
    value: float = field(metadata={"format": ".6g"})
    steps: int
    solver_calls: int
    seconds: float = field(metadata={"format": ".1f"})
    commit: str
    device: str

    @property
    def key(self) -> Key:
        """What identifies the run: a second run of the same key replaces the row."""
        return (self.task, self.data, self.length, self.method, self.setting, self.seed)


R = TypeVar("R", bound=Any)


class RowFile(Generic[R]):
    """The rows of a CSV file. Several processes may add rows to the same file."""

    #: A dataclass with a `key`.
    kind: type[R]

    def __init__(self, file: Path) -> None:
        self.file = file
        self._fields = {field.name: field for field in fields(self.kind)}
        self._parsers = get_type_hints(self.kind)

    def read(self) -> list[R]:
        """All rows; none if the file does not exist. Raises ValueError if it is not such a file."""
        if not self.file.exists():
            return []
        reader = csv.DictReader(io.StringIO(self.file.read_text(encoding="utf-8")))
        if reader.fieldnames != list(self._fields):
            raise ValueError(
                f"{self.file}: expected the columns {','.join(self._fields)} but got "
                f"{','.join(reader.fieldnames or [])}; remove or rename the file"
            )
        return [
            self.kind(**{name: self._parsers[name](text) for name, text in line.items()})
            for line in reader
        ]

    def add(self, row: R) -> None:
        """Adds the row; replaces an earlier one of the same run."""
        with self._locked():
            rows = [other for other in self.read() if other.key != row.key]
            self._write([*rows, row])

    def create(self) -> None:
        """Creates a file without rows if it does not exist."""
        self.remove(lambda _: False)

    def remove(self, unwanted: Callable[[R], bool]) -> None:
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

    def _write(self, rows: list[R]) -> None:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self._fields)
        for row in rows:
            writer.writerow(
                format(getattr(row, name), field.metadata.get("format", ""))
                for name, field in self._fields.items()
            )
        write_atomically(self.file, text.getvalue().encode())


class Results(RowFile[Row]):
    """training.csv or small.csv."""

    kind = Row
