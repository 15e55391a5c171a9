"""Files that are always either the old or the complete new version."""

import contextlib
import json
import os
import threading
from pathlib import Path

_writing = threading.RLock()  # a signal handler may write, too


class CannotWriteError(OSError):
    """A file that could not be written; no partial file is left."""


def is_alive(process: int) -> bool:
    """Whether there is a process with this number."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _remove_abandoned(path: Path) -> None:
    """Temporary files of this file whose process was killed."""
    prefix = path.name + ".tmp"
    for name in os.listdir(path.parent):
        process = name.removeprefix(prefix)
        if name.startswith(prefix) and process.isdecimal() and not is_alive(int(process)):
            with contextlib.suppress(OSError):
                (path.parent / name).unlink()


def _flush_folder(folder: Path) -> None:
    """The new name of a file is on disk only once its folder is flushed."""
    with contextlib.suppress(OSError):  # the file is complete
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_json(path: Path, value: object) -> None:
    """Writes the value as indented JSON, atomically."""
    write_atomically(path, f"{json.dumps(value, indent=1)}\n".encode())


def write_atomically(path: Path, content: bytes) -> None:
    """Replaces the file atomically; raises CannotWriteError and leaves no partial file."""
    temporary = path.with_name(f"{path.name}.tmp{os.getpid()}")
    with _writing:  # the name is the process's
        try:
            _remove_abandoned(path)
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            _flush_folder(path.parent)
        except OSError as error:
            raise CannotWriteError(error.errno, os.strerror(error.errno or 0), str(path)) from None
        finally:
            temporary.unlink(missing_ok=True)
