"""A pool of workers with one instance each at a time and a time limit; dead ones are replaced.

A worker is a process (`process_worker`) or a Ray actor (`ray_worker`). The pool hands out
instances in order and keeps as many in progress as it has workers. Results are returned in the
order of the instances, and the reported failure is that of the lowest index, so results do not
depend on the number of workers.

A worker answers ("began",) before it calls the function. A death after that counts against the
instance; any earlier one does not, since the worker may have died while it was idle.
"""

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

#: (instance, args, kwargs)
Task = tuple[Any, tuple, dict]

#: Seconds that a worker may take to start, including the imports of the function, or to begin a
#: task.
START_LIMIT = 300.0
# How often a worker may die on one instance.
_DEATHS = 2
# How many workers beyond the size of the pool may be lost in one run before they begin a task.
_LOSSES = 2


@dataclass
class Outcome:
    """A solution, or the reason why there is none."""

    solution: Any = None
    failure: Literal["", "error", "timeout", "died"] = ""
    message: str = ""
    exception: Exception | None = None
    trace: str = ""


class WorkerDied(Exception):  # noqa: N818  (an event, not an error of its own)
    """A worker ended before it answered."""


class Worker(Protocol):
    """The interface of workers."""

    def submit(self, task: Task) -> None:
        """Starts a task; raises WorkerDied if the worker has ended."""

    def answer(self) -> tuple:
        """After the start, ("ready",) or ("refused", why). After `submit`, ("began",) and then
        `worker.solve_one`'s result. Raises WorkerDied if the worker has ended; all answers that it
        gave before are returned first."""

    def kill(self) -> None:
        """Ends the worker immediately."""


def _start_deadline() -> float:
    return time.monotonic() + START_LIMIT


@dataclass
class _Post:
    """A worker and its current task."""

    worker: Worker
    ready: bool = False
    index: int | None = None
    began: bool = False
    deadline: float = field(default_factory=_start_deadline)


class WorkerPool:
    """`count` workers, created by `make` when they are first needed.

    wait(workers, seconds) returns the workers that have an answer or have died.
    """

    def __init__(
        self,
        make: Callable[[], Worker],
        wait: Callable[[list[Worker], float], list[Worker]],
        count: int,
        timeout: float | None,
    ) -> None:
        self._make, self._wait = make, wait
        self._count, self._timeout = count, timeout
        self._posts: list[_Post] = []
        self._lock = threading.Lock()
        self._end = weakref.finalize(self, _end, self._posts, os.getpid())

    def close(self) -> None:
        """Ends the workers; the next run starts new ones."""
        with self._lock:
            _end(self._posts, os.getpid())

    def run(self, tasks: Sequence[Task], stop_on_failure: bool) -> list[Outcome | None]:
        """An outcome for every task; None for tasks skipped after a failure."""
        with self._lock:
            try:
                return _Run(self, tasks, stop_on_failure).outcomes()
            except BaseException:  # including Ctrl-C: leave no work running in the background
                _end(self._posts, os.getpid())
                raise


def _end(posts: list[_Post], pid: int) -> None:
    if pid == os.getpid():  # a forked child inherits the list but not the workers
        for post in posts:
            post.worker.kill()
    posts.clear()


class _Run:
    """One call of a pool."""

    def __init__(self, pool: WorkerPool, tasks: Sequence[Task], stop_on_failure: bool) -> None:
        self.pool, self.tasks, self.stop = pool, tasks, stop_on_failure
        self.posts = pool._posts
        self.waiting = deque(range(len(tasks)))
        self.deaths: dict[int, int] = {}
        self.lost = 0
        self.results: list[Outcome | None] = [None] * len(tasks)
        self.failed_at = len(tasks)  # the lowest index that failed

    def outcomes(self) -> list[Outcome | None]:
        while True:
            self._hand_out()
            busy = [post for post in self.posts if not post.ready or post.index is not None]
            needed = [post for post in busy if self._matters(post)]
            if needed:
                self._listen(needed)
            elif not self.waiting:  # otherwise all workers were lost
                break
        self._drop([post for post in self.posts if post.index is not None])
        return self.results

    def _matters(self, post: _Post) -> bool:
        if post.index is None:  # starting
            return bool(self.waiting)
        return not self.stop or post.index < self.failed_at

    def _hand_out(self) -> None:
        wanted = min(self.pool._count, len(self.waiting))
        idle = sum(post.index is None for post in self.posts)
        for _ in range(min(wanted - idle, self.pool._count - len(self.posts))):
            self.posts.append(_Post(self.pool._make()))
        for post in list(self.posts):
            if not self.waiting:
                return
            if post.ready and post.index is None:
                post.index, post.began = self.waiting.popleft(), False
                post.deadline = _start_deadline()
                try:
                    post.worker.submit(self.tasks[post.index])
                except WorkerDied as death:
                    self._lost(post, str(death))

    def _listen(self, posts: list[_Post]) -> None:
        remaining = min(post.deadline for post in posts) - time.monotonic()
        heard = self.pool._wait([post.worker for post in posts], max(0.0, remaining))
        for post in posts:
            if post.worker in heard:
                try:
                    self._take(post, post.worker.answer())
                except WorkerDied as death:
                    self._died(post, death)
            elif time.monotonic() >= post.deadline:
                self._late(post)

    def _take(self, post: _Post, answer: tuple) -> None:
        kind, *rest = answer
        if kind == "refused":
            raise StartError(f"a worker could not load the function:\n{rest[0]}")
        if kind == "ready":
            post.ready = True
            return
        assert post.index is not None
        if kind == "began":
            limit = self.pool._timeout
            post.began = True
            post.deadline = float("inf") if limit is None else time.monotonic() + limit
            return
        if kind == "solved":
            self.results[post.index] = Outcome(rest[0])
        else:
            exception, message, trace = rest
            self._fail(post.index, Outcome(None, "error", message, exception, trace))
        post.index = None

    def _late(self, post: _Post) -> None:
        if post.index is None:
            raise StartError(f"a worker was not ready after {START_LIMIT:g} s")
        if not post.began:
            self._lost(post, f"no answer for {START_LIMIT:g} s")
            return
        self._drop([post])
        limit = f"it took longer than timeout={self.pool._timeout:g} s"
        self._fail(post.index, Outcome(None, "timeout", limit))

    def _died(self, post: _Post, death: WorkerDied) -> None:
        if post.index is None or not post.began:
            self._lost(post, str(death))
            return
        self._drop([post])
        deaths = self.deaths[post.index] = self.deaths.get(post.index, 0) + 1
        if deaths < _DEATHS:
            self.waiting.appendleft(post.index)
        else:
            self._fail(
                post.index, Outcome(None, "died", f"its worker died {deaths} times: {death}")
            )

    def _lost(self, post: _Post, reason: str) -> None:
        """Replaces a worker that died before it began a task: not the fault of an instance."""
        self._drop([post])
        if post.index is not None:
            self.waiting.appendleft(post.index)
        self.lost += 1
        if self.lost > self.pool._count + _LOSSES:
            raise StartError(f"{self.lost} workers ended before they began a task: {reason}")

    def _fail(self, index: int, outcome: Outcome) -> None:
        self.results[index] = outcome
        self.failed_at = min(self.failed_at, index)
        if self.stop:
            self.waiting = deque(each for each in self.waiting if each < self.failed_at)

    def _drop(self, posts: list[_Post]) -> None:
        for post in posts:
            post.worker.kill()
            self.posts.remove(post)


class StartError(RuntimeError):
    """Workers cannot start."""


def _cannot_send(what: str, got: str, remedy: str) -> TypeError:
    return TypeError(
        f"[aimle.per_instance] expected {what} to be picklable, because workers are other "
        f"processes, but got {got}: {remedy}, or use pool='threads' or workers=0"
    )


def cannot_send_function(fn: object, error: Exception, by_value: bool) -> TypeError:
    """For a function that pickle, or cloudpickle if `by_value`, cannot pickle."""
    remedy = "make it a top-level function of a module, or install cloudpickle"
    if by_value:
        remedy = (
            "create what cannot be pickled (locks, files, connections, models) inside the "
            "function, or make it a global of the function's module"
        )
    return _cannot_send("fn", f"{fn!r} ({error})", remedy)


def cannot_send_arguments(error: Exception) -> TypeError:
    """For extra arguments of a call."""
    remedy = "pass numbers, and create the rest inside the function"
    return _cannot_send("the extra arguments", f"some that are not ({error})", remedy)
