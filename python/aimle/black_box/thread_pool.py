"""Solves instances in this process: one after the other, or in threads."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from aimle.black_box.worker import solve_one
from aimle.black_box.worker_pool import Outcome, Task


class ThreadPool:
    """A number of threads, created per call; 0: the calling thread."""

    def __init__(self, fn: Callable[..., Any], as_tensor: bool, count: int) -> None:
        self._fn, self._as_tensor, self._count = fn, as_tensor, count

    def close(self) -> None:
        """Part of the pool interface; does nothing."""

    def run(self, tasks: Sequence[Task], stop_on_failure: bool) -> list[Outcome | None]:
        """An outcome for every task; None for tasks skipped after a failure."""
        results: list[Outcome | None] = [None] * len(tasks)
        for index, outcome in enumerate(self._each(tasks)):
            results[index] = outcome
            if outcome.failure and stop_on_failure:
                break
        return results

    def _each(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        if self._count == 0:
            for task in tasks:
                yield self._solve(task)
            return
        threads = ThreadPoolExecutor(self._count)
        try:
            under_way: deque[Future[Outcome]] = deque()
            for task in tasks:
                under_way.append(threads.submit(self._solve, task))
                if len(under_way) == 2 * self._count:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            threads.shutdown(cancel_futures=True)

    def _solve(self, task: Task) -> Outcome:
        kind, *rest = solve_one(self._fn, self._as_tensor, *task)
        if kind == "solved":
            return Outcome(rest[0].copy())  # the function may return the same array again
        exception, message, trace = rest
        return Outcome(None, "error", message, exception, trace)
