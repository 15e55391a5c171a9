"""Runs the program in a process that torchrun has started: ``torchrun -m aimle train ...``.

Python opens the process group and hands over its name; the program's own code, loaded as a library,
trains in it.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from aimle import _library

LIBRARY = "libaimle_program.so"

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


def _name_of_this_start(store: dist.Store, rank: int, size: int) -> str:
    """A word that the processes of this start agree on, for their entries in the store.

    torchrun keeps its store when it starts the processes again, and the new ones would read entries
    of those that have ended. So every process says hello with a word of its own, and the first one
    answers under that word."""
    word = secrets.token_hex(8)
    if rank > 0:
        store.set(f"aimle/hello/{rank}", word)
        name = store.get(f"aimle/answer/{word}").decode()  # waits for it
        store.set(f"aimle/heard/{name}/{rank}", "")
        return name
    others = set(range(1, size))
    while others:
        for other in list(others):
            if store.check([f"aimle/hello/{other}"]):
                store.set(f"aimle/answer/{store.get(f'aimle/hello/{other}').decode()}", word)
            if store.check([f"aimle/heard/{word}/{other}"]):
                others.remove(other)
        time.sleep(0.01)
    return word


def _open_group() -> str:
    """Opens the process group of all processes, on this one's GPU if there are any: its name."""
    backend = "gloo"
    if torch.cuda.is_available():
        backend = "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    store, rank, size = next(dist.rendezvous("env://"))
    own = dist.PrefixStore(_name_of_this_start(store, rank, size), store)
    dist.init_process_group(backend, store=own, rank=rank, world_size=size, timeout=_PATIENCE)
    assert dist.group.WORLD is not None
    return dist.group.WORLD.group_name


@contextmanager
def joined(path: Path) -> Iterator[Callable[[list[str]], int]]:
    """Opens the process group, and gives a function that does what `aimle ARGUMENTS` does, together
    with the other processes, and returns its exit code."""
    program = ctypes.CDLL(str(path))
    program.aimle_program_join.argtypes = [ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64]
    group = _open_group()
    try:
        failed = program.aimle_program_join(
            group.encode(),
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


def run(library: Path, arguments: list[str]) -> int:
    """The exit code of `aimle ARGUMENTS`, run by the program's library."""
    with joined(library) as program:
        return program(arguments)
