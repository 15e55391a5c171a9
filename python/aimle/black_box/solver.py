"""The solver that ``aimle.per_instance`` makes."""

from __future__ import annotations

import io
import itertools
import os
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aimle._files import write_atomically
from aimle.black_box import process_worker, ray_worker
from aimle.black_box.solution_cache import SolutionCache
from aimle.black_box.thread_pool import ThreadPool
from aimle.black_box.worker_pool import Outcome, StartError, Task, WorkerPool
from aimle.callable_solver.answers import as_answer
from aimle.callable_solver.extra_arguments import ExtraArguments
from aimle.settings.checks import (
    check_bool,
    check_choice,
    check_int,
    check_positive,
    check_share,
    check_tensor,
    check_type,
    refuse_type,
)
from aimle.settings.names import known_names
from aimle.solvers import Solver, refuse_class_or_layer

_OWNER = "per_instance"

Function = Callable[..., Any]
Pool = Literal["processes", "threads", "ray"]


# Numbers the files of this process; solvers may share a folder.
_saved = itertools.count(1)
# The folder of each process: a forked one makes its own.
_folders: dict[int, str] = {}


def _temporary_folder() -> str:
    """For instances that failed: one folder for each process, made when it is first needed."""
    pid = os.getpid()
    if pid not in _folders:
        _folders[pid] = tempfile.mkdtemp(prefix=f"aimle_instances_{pid}_")
    return _folders[pid]


class SolverError(RuntimeError):
    """Raised when an instance could not be solved.

    index: its row in the call. instance: its scores. path: the file they were saved to; load it
    with ``numpy.load(path)["scores"]``; empty if it could not be written. reason: "error",
    "timeout" or "died". trace: the traceback of the function in the worker. The function's own
    exception is the cause, if it could be pickled.
    """

    def __init__(
        self, message: str, index: int, instance: NDArray, path: str, reason: str, trace: str = ""
    ) -> None:
        super().__init__(message)
        self.index, self.instance, self.path = index, instance, path
        self.reason, self.trace = reason, trace

    def __reduce__(self) -> tuple:
        arguments = (self.index, self.instance, self.path, self.reason, self.trace)
        return type(self), (str(self), *arguments)


class PerInstance:
    """A solver made from a function of one instance by ``aimle.per_instance``.

    It can be copied, pickled and forked. The first call of each copy starts its workers; they end
    with ``close()``, on leaving a ``with solver:`` block, when the object is deleted and when the
    process exits.
    """

    #: Rows are independent of each other.
    rowwise = True
    #: As for every callable, see ``PerturbedMap``; absent unless it was given.
    fixed_size: bool | None

    def __init__(
        self,
        fn: Function,
        *,
        workers: int,
        pool: Pool,
        timeout: float | None,
        on_error: Literal["raise", "last", "nan"],
        cache: SolutionCache | None,
        instance: Literal["numpy", "tensor"],
        fractional: bool,
        save_to: str | os.PathLike[str] | None,
        known: dict[str, Any],
    ) -> None:
        self.fn, self.workers, self.pool, self.timeout = fn, workers, pool, timeout
        self.on_error, self.instance, self.fractional = on_error, instance, fractional
        self.save_to = save_to
        for name, value in known.items():  # an absent attribute means: not known
            if value is not None:
                setattr(self, name, value)
        self._cache = cache
        self._last: dict[tuple[int, ...], NDArray] = {}
        self._counts = dict.fromkeys(("solved", "cached", "failed"), 0)
        self._started: tuple[int, ThreadPool | WorkerPool] | None = None

    def __repr__(self) -> str:
        name = getattr(self.fn, "__name__", repr(self.fn))
        return f"per_instance({name}, workers={self.workers}, pool={self.pool!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_started": None}

    def __enter__(self) -> PerInstance:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the workers. The next call starts new ones."""
        if self._started is not None and self._started[0] == os.getpid():
            self._started[1].close()
        self._started = None

    def stats(self) -> dict[str, int]:
        """How many rows were solved, answered from the cache, and failed, since construction."""
        return dict(self._counts)

    @torch.compiler.disable
    def __call__(self, scores: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Solutions of scores [N, *instance], with the same shape, dtype and device.

        Extra arguments that are tensors, arrays or lists have one entry per row; all others are the
        same for all rows.
        """
        check_tensor(_OWNER, "scores", scores)
        if scores.dim() < 1:
            raise ValueError(f"[aimle.{_OWNER}] expected scores [N, *instance] but got a number")
        if self._cache is not None and (args or kwargs):
            raise ValueError(
                f"[aimle.{_OWNER}] cache assumes the same feasible solutions for all instances, so "
                "the call takes no extra arguments: bind them to fn with functools.partial, or "
                "leave out cache"
            )
        half = scores.dtype in (torch.bfloat16, torch.float16)
        rows = (scores.float() if half else scores).detach().cpu().numpy()
        solutions = np.full(rows.shape, np.nan, dtype=rows.dtype)
        left = ~np.isnan(rows).any(axis=tuple(range(1, rows.ndim)))
        chosen = None if self._cache is None else self._cache.rows(len(rows), rows.shape[1:]) & left
        if chosen is not None:
            left &= ~chosen
        self._solve(rows, np.flatnonzero(left), solutions, args, kwargs)
        if chosen is not None and chosen.any():
            self._recall(rows, np.flatnonzero(chosen), solutions)
        return torch.from_numpy(solutions).to(scores)

    def _recall(self, rows: NDArray, indices: NDArray, solutions: NDArray) -> None:
        """Answers rows from the cache and solves the others."""
        assert self._cache is not None
        best, found = self._cache.best(rows[indices])
        solutions[indices[found]] = best[found]
        self._counts["cached"] += int(found.sum())
        self._solve(rows, indices[~found], solutions, (), {})

    def _solve(
        self, rows: NDArray, indices: NDArray, solutions: NDArray, args: tuple, kwargs: dict
    ) -> None:
        if len(indices) == 0:
            return
        rows = np.ascontiguousarray(rows)
        entries = ExtraArguments(args, kwargs).each(
            lambda name, given: self._entry(name, given, len(rows))
        )
        tasks = _Tasks(rows, indices, entries.args, entries.kwargs)
        try:
            outcomes = self._running().run(tasks, self.on_error == "raise")
        except StartError as error:
            self.close()
            raise RuntimeError(f"[aimle.{_OWNER}] {error}") from None
        for number, outcome in enumerate(outcomes):
            index = int(indices[number])
            if outcome is None:
                continue
            if outcome.failure:
                solutions[index] = self._fallback(index, len(rows), tasks[number], outcome)
            else:
                solution = self._checked(index, outcome.solution, rows)
                solutions[index] = self._last[solution.shape] = solution
                self._counts["solved"] += 1
                if self._cache is not None:
                    self._cache.add(solution)

    def _entry(self, name: str, given: Any, count: int) -> Callable[[int], Any]:
        """A function from the row to its entry of an extra argument."""
        if not isinstance(given, Tensor | np.ndarray | list) or getattr(given, "ndim", 1) == 0:
            return lambda _: given
        if len(given) != count:
            raise ValueError(
                f"[aimle.{_OWNER}] expected the extra argument {name} to have an entry for each of "
                f"the {count} rows but got {len(given)}: layers made with repeat_arguments=True "
                "repeat one entry per example for its samples; bind what all rows share to fn with "
                "functools.partial"
            )
        if isinstance(given, Tensor):
            given = given.detach().cpu()
            if self.instance == "numpy":
                given = given.numpy()
        return lambda row: given[row]

    def _checked(self, index: int, solution: NDArray, rows: NDArray) -> NDArray:
        """A solution as the layer needs it; raises ValueError or TypeError naming its row."""
        owner, expected = f"{_OWNER}: row {index}", rows.shape[1:]
        if solution.dtype.kind not in "biuf":
            raise TypeError(
                f"[aimle.{owner}] expected fn to return numbers but got {solution.dtype}"
            )
        if solution.shape != expected:
            raise ValueError(
                f"[aimle.{owner}] expected fn to return a solution of the shape of its instance, "
                f"{list(expected)}, but got {list(solution.shape)}: return an entry for every score"
                ", 1 where it is chosen and 0 elsewhere"
            )
        scores = torch.from_numpy(rows[index : index + 1])
        z = as_answer(owner, solution[None], scores, fractional=self.fractional)
        return z[0].numpy()

    def _fallback(self, index: int, count: int, task: Task, outcome: Outcome) -> NDArray | float:
        """The substitute for a missing solution; raises SolverError if there is none."""
        self._counts["failed"] += 1
        raises = self.on_error == "raise"
        message = f"[aimle.{_OWNER}] row {index} of {count} was not solved: {outcome.message}"
        path = ""
        if raises or self.save_to is not None:
            try:
                path = self._save(index, task)
                message += f"; its instance is in {path} (numpy.load(path)['scores'])"
            except OSError as error:
                message += f"; its instance could not be saved: {error}"
        last = self._last.get(task[0].shape)
        if raises or (self.on_error == "last" and last is None):
            if not raises:
                message += "; on_error='last' has no solution before it to fall back on"
            reason = outcome.failure
            unsolved = SolverError(message, index, task[0], path, reason, outcome.trace)
            if outcome.trace and hasattr(unsolved, "add_note"):
                unsolved.add_note(outcome.trace)
            raise unsolved from outcome.exception
        if self._counts["failed"] == 1:
            warnings.warn(
                f"{message}; on_error={self.on_error!r} applies to it and to later failures, which "
                "solver.stats() counts",
                stacklevel=4,
            )
        return np.nan if last is None or self.on_error == "nan" else last

    def _save(self, index: int, task: Task) -> str:
        """Saves an instance, with those of its arguments that are numbers, to a file."""
        folder = Path(_temporary_folder() if self.save_to is None else self.save_to)
        folder.mkdir(parents=True, exist_ok=True)
        instance, args, kwargs = task
        extra = {f"argument_{i}": each for i, each in enumerate(args)} | kwargs
        numeric = int | float | np.number | np.ndarray | Tensor
        arrays = {
            name: np.asarray(each) for name, each in extra.items() if isinstance(each, numeric)
        }
        path = folder / f"instance_{os.getpid()}_{next(_saved)}_row_{index}.npz"
        content = io.BytesIO()
        np.savez(content, **{**arrays, "scores": instance})
        write_atomically(path, content.getvalue())
        return str(path)

    def _running(self) -> ThreadPool | WorkerPool:
        """The pool of this process."""
        if self._started is None or self._started[0] != os.getpid():
            self._started = os.getpid(), self._start()
        return self._started[1]

    def _start(self) -> ThreadPool | WorkerPool:
        as_tensor = self.instance == "tensor"
        if self.pool == "threads" or self.workers == 0:
            return ThreadPool(self.fn, as_tensor, self.workers)
        if self.pool == "ray":
            fn = self.fn

            def make() -> ray_worker.RayWorker:
                return ray_worker.RayWorker(fn, as_tensor)

            return WorkerPool(make, ray_worker.wait_for, self.workers, self.timeout)
        setup = process_worker.setup_for(_OWNER, self.fn, as_tensor)
        return WorkerPool(
            lambda: process_worker.ProcessWorker(setup),
            process_worker.wait_for,
            self.workers,
            self.timeout,
        )


class _Tasks(Sequence[Task]):
    """The tasks of a call, each created on request, so that only pending ones are copied."""

    def __init__(self, rows: NDArray, indices: NDArray, args: tuple, kwargs: dict) -> None:
        self._rows, self._indices = rows, indices
        self._args, self._kwargs = args, kwargs

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, number: Any) -> Any:
        row = int(self._indices[number])
        kwargs = {name: entry(row) for name, entry in self._kwargs.items()}
        return self._rows[row].copy(), tuple(entry(row) for entry in self._args), kwargs


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@known_names
def per_instance(
    fn: Function,
    *,
    workers: int | None = 0,
    pool: Pool = "processes",
    timeout: float | None = None,
    on_error: Literal["raise", "last", "nan"] = "raise",
    cache: float = 0.0,
    cache_size: int = 1000,
    instance: Literal["numpy", "tensor"] = "numpy",
    fractional: bool = False,
    sense: Literal["max", "min"] | None = None,
    instance_dims: int | None = None,
    fixed_size: bool | None = None,
    save_to: str | os.PathLike[str] | None = None,
) -> PerInstance:
    """Makes a solver from a function of one instance: ``aimle.AIMLE(aimle.per_instance(fn), ...)``.

    fn is called with the scores of one instance, [*instance] without a batch dimension, and returns
    its best solution in the same shape: an array, a tensor or a list of 0 and 1, bools or floats.
    Results do not depend on the number of workers. A row with NaN among its scores is not solved:
    its solution is NaN.

    Args:
        fn: the function. With workers it must be picklable, for example a top-level function of a
            module, unless cloudpickle is installed. Each worker gets a copy when it starts.
        workers: how many instances are solved at once. 0, the default: one after the other in this
            process. None: one for each core that this process may use.
        pool: "processes"; "threads", for functions that release the GIL; "ray": actors of the Ray
            cluster that ``ray.init`` connected to, or of a local one.
        timeout: seconds allowed per instance; after that its worker is killed and replaced. Not
            available for threads and workers=0, which cannot be interrupted.
        on_error: what to do if fn raises, times out, or its worker dies twice (an instance whose
            worker died is retried once). "raise": raise an ``aimle.SolverError`` with the instance
            of the first such row. "last": use the solution of the last row before it that was
            solved, in this call or else in an earlier one; an error if there is none. "nan": a row
            of NaN, whose example gets a gradient of NaN. The last two warn once and are counted in
            ``stats()``.
        cache: the share of rows, from 0 to 1, that are answered with the best known solution
            instead of a solve. For linear objectives <scores, z> over solutions that are feasible
            for every instance. It needs ``sense``. Which rows these are depends only on the number
            of the call.
        cache_size: the maximum number of known solutions.
        instance: what fn receives: "numpy" arrays, or "tensor" for tensors on the CPU. Workers for
            arrays do not import torch.
        fractional: accept solutions that are not whole numbers.
        sense, instance_dims, fixed_size: as the attributes of callables, see ``PerturbedMap``.
        save_to: the folder for failed instances; None: one temporary folder per process, created
            with the first failure and not removed.
    """
    check_type(_OWNER, fn, Callable, "fn to be callable")
    refuse_class_or_layer(_OWNER, "fn", fn)
    if isinstance(fn, Solver | PerInstance):
        hint = ", which solves whole batches: pass it to the layer directly"
        refuse_type(_OWNER, "fn to be a function of one instance", fn, hint)
    check_choice(_OWNER, "pool", pool, ("processes", "threads", "ray"))
    check_choice(_OWNER, "on_error", on_error, ("raise", "last", "nan"))
    check_choice(_OWNER, "instance", instance, ("numpy", "tensor"))
    check_choice(_OWNER, "sense", sense, (None, "max", "min"))
    check_type(_OWNER, save_to, str | os.PathLike | None, "save_to to be a path or None")
    workers = _cores() if workers is None else workers
    workers = check_int(_OWNER, "workers", workers, 0)
    fractional = check_bool(_OWNER, "fractional", fractional)
    if fixed_size is not None:
        fixed_size = check_bool(_OWNER, "fixed_size", fixed_size)
    if instance_dims is not None:
        instance_dims = check_int(_OWNER, "instance_dims", instance_dims, 1)
    if workers == 0 and pool != "processes":
        raise ValueError(f"[aimle.{_OWNER}] expected workers >= 1 for pool={pool!r} but got 0")
    if timeout is not None:
        check_positive(_OWNER, "timeout", timeout)
        if pool == "threads" or workers == 0:
            here = "threads" if pool == "threads" else "workers=0"
            raise ValueError(
                f"[aimle.{_OWNER}] expected no timeout with {here} but got timeout={timeout!r}: "
                "only processes can be stopped; use workers >= 1 with pool='processes'"
            )
    return PerInstance(
        fn,
        workers=workers,
        pool=pool,
        timeout=timeout,
        on_error=on_error,
        cache=_cache(cache, cache_size, sense),
        instance=instance,
        fractional=fractional,
        save_to=save_to,
        known={"sense": sense, "instance_dims": instance_dims, "fixed_size": fixed_size},
    )


def _cache(share: float, size: int, sense: str | None) -> SolutionCache | None:
    check_share(_OWNER, "cache", share)
    size = check_int(_OWNER, "cache_size", size, 1)
    if share == 0:
        return None
    if sense is None:
        raise ValueError(
            f"[aimle.{_OWNER}] expected sense to be 'max' or 'min' with cache={share!r} but got "
            "None, without which the best known solution is undefined"
        )
    return SolutionCache(float(share), size, sense)
