"""Files that are complete or not there."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


class CannotWriteError(OSError):
    """A file that could not be written; nothing of it is left."""


def explain(error: Exception) -> str:
    """What went wrong with which file, without the class or number of the error."""
    if not isinstance(error, OSError) or error.filename is None:
        return str(error)
    if isinstance(error, CannotWriteError):
        remedy = "free some space or choose another place"
        return f"cannot write {error.filename}: {error.strerror}; {remedy}"
    return f"cannot read {error.filename}: {error.strerror}"


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _remove_abandoned(path: Path) -> None:
    """Temporaries of this file whose process was killed."""
    prefix = path.name + ".tmp"
    for name in os.listdir(path.parent):
        process = name.removeprefix(prefix)
        if name.startswith(prefix) and process.isdecimal() and not _is_alive(int(process)):
            with contextlib.suppress(OSError):
                (path.parent / name).unlink()


def write_atomically(path: Path, content: bytes) -> None:
    """Replaces the file by a complete one, or raises a CannotWriteError and leaves no trace."""
    temporary = path.with_name(f"{path.name}.tmp{os.getpid()}")
    try:
        _remove_abandoned(path)
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise CannotWriteError(error.errno, os.strerror(error.errno or 0), str(path)) from None
    finally:
        temporary.unlink(missing_ok=True)
