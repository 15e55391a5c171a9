"""Reads the files of runs and studies; reports damaged ones by name."""

import contextlib
import csv
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aimle._files import CannotWriteError

RESTORE = "restore it from a copy or compute it again"


class UnreadableError(ValueError):
    """A file or folder that cannot be read, with the reason and the remedy."""

    def __init__(self, place: Path, wrong: str, remedy: str = RESTORE) -> None:
        super().__init__(f"{place}: {wrong}; {remedy}")
        self.place, self.wrong, self.remedy = place, wrong, remedy


def explain(error: Exception) -> str:
    """The reason and the file, without the class or number of the error."""
    if not isinstance(error, OSError) or error.filename is None:
        return str(error)
    if isinstance(error, CannotWriteError):
        remedy = "free some space or choose another place"
        return f"cannot write {error.filename}: {error.strerror}; {remedy}"
    return f"cannot read {error.filename}: {error.strerror}"


def _read_text(file: Path) -> str:
    try:
        if file.exists() and not file.is_file():
            raise UnreadableError(file, "it is not a regular file", "move it away")
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UnreadableError(file, "it is damaged: it is not text in UTF-8") from None
    except FileNotFoundError:
        raise UnreadableError(file, "it is missing") from None
    except OSError as error:
        wrong = f"it cannot be read: {error.strerror}"
        raise UnreadableError(file, wrong, "make it readable") from None


def _parse(file: Path, text: str, first_line: int = 1) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        wrong = f"it is cut off or damaged: line {first_line + error.lineno - 1} is not valid JSON"
        raise UnreadableError(file, wrong) from None
    except RecursionError:
        raise UnreadableError(file, "it is damaged: it is nested too deeply") from None


def read_json(file: Path) -> Any:
    """The value in a JSON file; raises UnreadableError."""
    return _parse(file, _read_text(file))


def read_json_lines(file: Path) -> list[dict[str, Any]]:
    """The object in each line; raises UnreadableError with the first bad line."""
    rows = []
    for number, line in enumerate(_read_text(file).splitlines(), 1):
        row = _parse(file, line, number)
        if not isinstance(row, dict):
            raise UnreadableError(file, f"it is damaged: line {number} is not a JSON object")
        rows.append(row)
    return rows


def read_csv(file: Path) -> list[dict[str, str]]:
    """The lines below the header, as dicts; raises UnreadableError."""
    return list(csv.DictReader(_read_text(file).splitlines()))


def number(field: str) -> float | None:
    """A number that `read_csv` read; None if it is empty."""
    return float(field) if field else None


def number_or_nan(field: str) -> float:
    """A number that `read_csv` read; NaN if it is empty, as the standard error of one seed."""
    return float(field) if field else math.nan


def read_png(file: Path) -> bytes:
    """A whole picture; raises UnreadableError."""
    content = file.read_bytes()
    if not content.startswith(b"\x89PNG") or not content.endswith(b"IEND\xaeB`\x82"):
        raise UnreadableError(file, "it is cut off or damaged: it is not a complete PNG")
    return content


@contextlib.contextmanager
def naming_damage(place: Path) -> Iterator[None]:
    """Context manager: turns errors from unexpected contents into an UnreadableError."""
    try:
        yield
    except (UnreadableError, CannotWriteError):
        raise
    except KeyError as error:
        raise UnreadableError(place, f"it is damaged: there is no {error}") from error
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        wrong = "it is damaged, or its files do not belong together"
        raise UnreadableError(place, wrong) from error
    except OSError as error:
        wrong = f"it cannot be read: {error.strerror}"
        raise UnreadableError(place, wrong, "make it readable") from error
