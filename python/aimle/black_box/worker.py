"""Solves one instance with a user's function; as a program, the loop of a worker process.

A worker process runs this file by its path, so it imports neither the package nor torch unless the
user's function does, and starts in a fraction of a second. It has one end of a socket and

    receives  what it needs to load the function, and answers ("ready",) or ("refused", why)
    receives  (instance, args, kwargs), and answers ("began",) and the result of `solve_one`
    ends      when the other end is closed, even during a solve; its parent's death closes it too
"""

import contextlib
import importlib
import os
import pickle
import signal
import sys
import threading
import traceback
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

#: Set in the environment of workers.
IN_WORKER = "AIMLE_WORKER"


def solve_one(fn: Any, as_tensor: bool, instance: Any, args: tuple, kwargs: dict) -> tuple:
    """("solved", array) or ("raised", exception or None, its name and message, traceback)."""
    try:
        if as_tensor:
            import torch

            instance = torch.from_numpy(instance)
        solution = fn(instance, *args, **kwargs)
        if hasattr(solution, "detach"):
            solution = solution.detach().cpu().numpy()
        import numpy as np

        z = np.asarray(solution)
        # Objects are refused by their type; they themselves may not be picklable.
        return "solved", np.empty(z.shape, z.dtype) if z.dtype.hasobject else z
    except Exception as error:
        return _raised(error)


def _raised(error: Exception) -> tuple:
    trace = "".join(traceback.format_exception(error))
    return "raised", _sendable(error), f"{type(error).__name__}: {error}", trace


def _sendable(error: Exception) -> Exception | None:
    """The exception without its frames, or None if it cannot be pickled."""
    error = error.with_traceback(None)
    error.__cause__ = error.__context__ = None
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return None
    return error


def _load(setup: dict[str, Any]) -> Any:
    """Loads the function, with the parent's modules importable."""
    sys.path[:] = setup["path"]
    sys.argv = setup["argv"]
    if setup["main"] is not None:
        _import_main(setup["main"])
    for name in setup["modules"]:  # import now, so that it does not count as solve time
        importlib.import_module(name)
    return pickle.loads(setup["function"])


def _import_main(path: str) -> None:
    """Runs the parent's script under another name, as multiprocessing does, for its definitions."""
    import runpy
    import types

    module = types.ModuleType("__mp_main__")
    module.__dict__.update(runpy.run_path(path, run_name="__mp_main__"))
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module


def _receive(connection: Connection, tasks: SimpleQueue) -> None:
    try:
        while True:
            tasks.put(connection.recv_bytes())
    except (EOFError, OSError):
        os._exit(0)  # the parent has ended or closed the connection


def _serve(connection: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends its workers
    setup = connection.recv()
    try:
        fn = _load(setup)
    except BaseException as error:  # a script may call sys.exit
        connection.send(("refused", "".join(traceback.format_exception(error))))
        return
    connection.send(("ready",))
    tasks: SimpleQueue = SimpleQueue()
    threading.Thread(target=_receive, args=(connection, tasks), daemon=True).start()
    while True:
        try:
            task = pickle.loads(tasks.get())
        except Exception as error:  # the class of an argument may not be importable here
            task = error
        connection.send(("began",))
        failed = isinstance(task, Exception)
        connection.send(_raised(task) if failed else solve_one(fn, setup["as_tensor"], *task))


if __name__ == "__aimle_worker__":
    with contextlib.suppress(BrokenPipeError, ConnectionResetError, EOFError):
        _serve(Connection(int(sys.argv[1])))
