"""Worker processes: separate programs, started from scratch and never forked from this process.

A process forked from one with threads, such as any process that uses torch, may deadlock. The
drawback is that the function must be pickled, by pickle or, if it is installed, by cloudpickle,
which also handles functions defined in a notebook, lambdas and closures.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, cast

from aimle.black_box import worker
from aimle.black_box.worker_pool import (
    Task,
    Worker,
    WorkerDied,
    cannot_send_arguments,
    cannot_send_function,
)

_PROGRAM = "import runpy, sys; runpy.run_path(sys.argv.pop(1), run_name='__aimle_worker__')"
# There is already one worker per core.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# Polling interval for workers whose end of the socket is kept open by another process.
_LOOK = 1.0

_open: weakref.WeakSet[ProcessWorker] = weakref.WeakSet()


class ProcessWorker:
    """A Worker: a process that solves instances with a function."""

    def __init__(self, setup: dict[str, Any]) -> None:
        ours, theirs = socket.socketpair()
        environment = {**dict.fromkeys(_THREADS, "1"), **os.environ, worker.IN_WORKER: "1"}
        file = str(Path(worker.__file__).resolve())
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, file, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=environment,
            )
        self.connection = Connection(ours.detach())
        _open.add(self)
        with contextlib.suppress(OSError):  # if it has ended, `answer` reports it
            self.connection.send(setup)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def submit(self, task: Task) -> None:
        try:
            self.connection.send(task)
        except OSError as error:
            raise self._death() from error
        except Exception as error:
            raise cannot_send_arguments(error) from error

    def answer(self) -> tuple:
        try:
            if self.connection.poll():
                return self.connection.recv()
        except (EOFError, OSError) as error:
            raise self._death() from error
        raise self._death()

    def kill(self) -> None:
        self.connection.close()
        self._process.kill()
        self._process.wait()

    def _death(self) -> WorkerDied:
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return WorkerDied("it closed its connection")
        if code >= 0:
            return WorkerDied(f"exit status {code}")
        return WorkerDied(f"signal {-code} ({signal.Signals(-code).name})")


def _close_inherited() -> None:
    """In a forked child: closes the child's copies of the sockets, which belong to the parent."""
    for each in list(_open):
        with contextlib.suppress(OSError):
            each.connection.close()
        each._process.returncode = 0  # not a child of this process
    _open.clear()


os.register_at_fork(after_in_child=_close_inherited)


def wait_for(workers: list[Worker], seconds: float) -> list[Worker]:
    """The workers that have an answer, or have ended."""
    processes = cast("list[ProcessWorker]", workers)
    heard = wait([each.connection for each in processes], min(seconds, _LOOK))
    return [each for each in workers if cast(ProcessWorker, each).connection in heard] or [
        each for each in workers if cast(ProcessWorker, each).ended
    ]


def setup_for(owner: str, fn: Callable[..., Any], as_tensor: bool) -> dict[str, Any]:
    """What a worker needs to load fn; raises TypeError if fn cannot be sent."""
    if os.environ.get(worker.IN_WORKER):
        raise RuntimeError(
            f"[aimle.{owner}] a worker executed the script from which it imports the function: put "
            "the script's code under `if __name__ == '__main__':`, or the function into a module"
        )
    pickled, by_value = _pickled(fn)
    main = None
    if not by_value and b"__main__" in pickled:
        main = getattr(sys.modules["__main__"], "__file__", None)
        if main is None or not os.path.exists(main):
            raise TypeError(
                f"[aimle.{owner}] expected fn to be a function of a module but got {fn!r} of a "
                "session without a file: install cloudpickle, put it into a module, or use "
                "pool='threads' or workers=0"
            )
        main = os.path.abspath(main)
    return {
        "path": [os.path.abspath(each) for each in sys.path],
        "argv": sys.argv,
        "main": main,
        "function": pickled,
        "as_tensor": as_tensor,
        "modules": ["numpy", "torch"] if as_tensor else ["numpy"],
    }


def _pickled(fn: Callable[..., Any]) -> tuple[bytes, bool]:
    """The pickled function, and whether the pickle contains its code."""
    pickler: Any = pickle
    with contextlib.suppress(ImportError):
        pickler = importlib.import_module("cloudpickle")
    by_value = pickler is not pickle
    try:
        return pickler.dumps(fn), by_value
    except Exception as error:
        raise cannot_send_function(fn, error, by_value) from error
