"""One run of a campaign: a process `aimle train … --resume` in its folder.

Only the standard library, so that a Ray worker needs neither this package nor torch to load it.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

# Seconds that a run has to save its work after SIGTERM. The program gives up a step after 1.2 s.
SECONDS_TO_SAVE = 1.4

# Starts a program that ends with the process that started it, however that ends: a worker that was
# killed must not leave a run behind that keeps the folder locked.
_START = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
signal.pthread_sigmask(signal.SIG_SETMASK, [])
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True)
class Cell:
    """A run, and how it is started."""

    label: str
    folder: str
    program: str
    arguments: list[str]
    needs_gpu: bool = False
    working_folder: str = "."
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """How a run ended: success, a failure that it explained, or the death of its process."""

    ended: str  # "done", "failed" or "died"
    message: str = ""


class Stopped(Exception):  # noqa: N818  (an event, not an error)
    """The run was asked to stop, and has saved its work."""


def _program_of(cell: Cell) -> tuple[str, dict[str, str]]:
    """The program on this machine, and its environment."""
    if os.access(cell.program, os.X_OK):
        return cell.program, {**os.environ, **cell.environment}
    with contextlib.suppress(ImportError):
        from aimle.program import launch

        if (program := launch.find()) is not None:
            return str(program), launch.environment()
    raise FileNotFoundError(
        f"{socket.gethostname()} has no program {cell.program}: install the same version of aimle "
        "on every machine of the cluster, or put it on a file system that they share"
    )


def _check_folders(cell: Cell) -> None:
    config = Path(cell.folder) / "config.json"
    for place in (Path(cell.working_folder), config):
        if not place.exists():
            raise FileNotFoundError(
                f"{socket.gethostname()} does not see {place}: the machines of a cluster need a "
                "file system that they share for --out, --data and the working folder"
            )


def _stop(process: subprocess.Popen) -> None:
    """Lets a run save its work."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        process.wait(timeout=SECONDS_TO_SAVE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("aimle: ") if lines else "it said nothing"


def run_cell(cell: Cell, devices: str | None = None, should_stop=lambda: False) -> Result:
    """Runs to the end, on the GPUs named if any are.

    Stopped, once the run has saved its work, if `should_stop()` is true or an exception such as
    KeyboardInterrupt ends the wait.
    """
    try:
        _check_folders(cell)
        program, environment = _program_of(cell)
    except OSError as error:
        return Result("failed", str(error))
    if devices is not None:
        environment["CUDA_VISIBLE_DEVICES"] = devices
    with tempfile.TemporaryFile("w+", errors="replace") as messages:
        process = subprocess.Popen(
            [sys.executable, "-c", _START, str(os.getpid()), program, *cell.arguments],
            cwd=cell.working_folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=messages,
            start_new_session=True,  # Ctrl-C is the campaign's, which stops its runs
        )
        try:
            while process.poll() is None:
                if should_stop():
                    raise Stopped
                time.sleep(0.02)
        except BaseException:
            _stop(process)
            raise
        messages.seek(0)
        said = _last_line(messages.read())
    code = process.returncode
    if code == 0:
        return Result("done")
    number = -code if code < 0 else code - 128
    if number in signal.valid_signals():  # which the program may have obeyed
        return Result("died", f"ended by {signal.Signals(number).name}")
    return Result("failed", said)
