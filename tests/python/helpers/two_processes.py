"""Runs functions in two processes over gloo, started once for all of them.

Every case has a process group of its own, found by files, so that no port can be taken and one that
fails leaves nothing behind. A collective call that the other process does not answer fails after
LIMIT, and what does not end is killed.
"""

import pickle
import time
import traceback
import warnings
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

LIMIT = timedelta(seconds=120)

Cases = dict[str, Callable[[], object]]


def _run(rank: int, make_cases: Callable[[], Cases], folder: Path) -> None:
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="`broadcast_buffers` is deprecated")
    results: dict[str, tuple[object, str]] = {}
    for number, (name, case) in enumerate(make_cases().items()):
        store = dist.FileStore(str(folder / f"case_{number}"), 2)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=LIMIT)
        try:
            results[name] = (case(), "")
        except Exception:
            results[name] = (None, traceback.format_exc())
        dist.destroy_process_group()
        with (folder / f"rank_{rank}").open("wb") as file:
            pickle.dump(results, file)


class TwoProcesses:
    """What every case returned in both of them, which have `limit` seconds for all."""

    def __init__(self, make_cases: Callable[[], Cases], folder: Path, limit: float) -> None:
        context = mp.get_context("spawn")
        started = [
            context.Process(target=_run, args=(rank, make_cases, folder), daemon=True)
            for rank in (0, 1)
        ]
        for process in started:
            process.start()
        end = time.monotonic() + limit
        for process in started:
            process.join(max(end - time.monotonic(), 0.0))
            if process.is_alive():
                process.kill()
                process.join()
        self._files = [folder / f"rank_{rank}" for rank in (0, 1)]

    def __getitem__(self, name: str) -> list:
        """The results of a case by rank; AssertionError with the trace of one that failed."""
        both = []
        for rank, file in enumerate(self._files):
            results = pickle.loads(file.read_bytes()) if file.exists() else {}
            assert name in results, f"rank {rank} did not end {name}"
            result, error = results[name]
            assert not error, f"rank {rank}: {error}"
            both.append(result)
        return both
