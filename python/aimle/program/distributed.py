"""Runs the program in a process that torchrun has started: ``torchrun -m aimle train ...``.

Python opens the process group and hands over its name; the program's own code, loaded as a library,
trains in it.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from aimle import _library

LIBRARY = "libaimle_program.so"
NOT_BUILT = (
    "aimle: the program is not part of this installation: it is built where CLI11, nlohmann-json "
    "and zlib are installed"
)

# The others wait while the first process evaluates. One that has died is noticed at once, by its
# closed connection.
_PATIENCE = timedelta(hours=6)


def is_started_by_torchrun() -> bool:
    """Whether this process is one of a group that finds each other by the environment."""
    return all(name in os.environ for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR"))


def find() -> Path | None:
    """The program as a library, beside the ops; None if it was not built."""
    place = _library.find().with_name(LIBRARY)
    return place if place.is_file() else None


@contextmanager
def joined(path: Path) -> Iterator[Callable[[list[str]], int]]:
    """Opens the process group, and gives a function that does what `aimle ARGUMENTS` does, together
    with the other processes, and returns its exit code."""
    program = ctypes.CDLL(str(path))
    program.aimle_program_join.argtypes = [ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64]
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo", timeout=_PATIENCE
    )
    try:
        assert dist.group.WORLD is not None
        failed = program.aimle_program_join(
            dist.group.WORLD.group_name.encode(),
            int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
            int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")),
        )
        if failed:
            sys.exit(failed)
        yield lambda arguments: _call(program, arguments)
    finally:
        program.aimle_program_leave()
        dist.destroy_process_group()


def _call(program: ctypes.CDLL, arguments: list[str]) -> int:
    words = [os.fsencode(word) for word in ("aimle", *arguments)]
    argv = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    return program.aimle_program_main(len(words), argv)


def run(arguments: list[str]) -> int | str:
    """The exit code of `aimle ARGUMENTS`, or a message where the program was not built."""
    path = find()
    if path is None:
        return NOT_BUILT
    with joined(path) as program:
        return program(arguments)
