"""Workers that are actors of a Ray cluster: `pip install aimle[ray]`."""

import math
import sys
from collections.abc import Callable
from typing import Any, cast

from aimle.black_box import worker
from aimle.black_box.worker import solve_one
from aimle.black_box.worker_pool import (
    Task,
    Worker,
    WorkerDied,
    cannot_send_arguments,
    cannot_send_function,
)


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ImportError(
            "[aimle.per_instance] pool='ray' needs Ray: pip install aimle[ray]"
        ) from error
    return ray


class _Solving:
    """The Ray actor."""

    def __init__(self, fn: Callable[..., Any], as_tensor: bool) -> None:
        self._fn, self._as_tensor = fn, as_tensor

    def start(self) -> tuple:
        """Returns once the actor has started."""
        return ("ready",)

    def begin(self, task: Task) -> tuple:
        """Receives the task of the next `solve`."""
        self._task = task
        return ("began",)

    def solve(self) -> tuple:
        instance, args, kwargs = self._task
        if self._as_tensor:
            instance = instance.copy()  # Ray's arrays are read-only
        return solve_one(self._fn, self._as_tensor, instance, args, kwargs)


class RayWorker:
    """A Worker: an actor that solves instances with a function, on one CPU of the cluster.

    An instance is sent by one call and solved by the next, which follows once the first has
    answered. In a single call, its death would look the same whether or not the solve had begun: an
    answer that an actor gives just before it dies may be lost.
    """

    def __init__(self, fn: Callable[..., Any], as_tensor: bool) -> None:
        self._ray = _ray()
        if not self._ray.is_initialized():
            self._ray.init()
        # By value: the cluster's workers need neither this package nor torch.
        for module in (worker, sys.modules[__name__]):
            self._ray.cloudpickle.register_pickle_by_value(module)
        actor = self._ray.remote(num_cpus=1, max_restarts=0)(_Solving)
        try:
            self._actor = actor.remote(fn, as_tensor)
        except TypeError as error:
            raise cannot_send_function(fn, error, by_value=True) from error
        self.pending = self._actor.start.remote()

    def submit(self, task: Task) -> None:
        try:
            self.pending = self._actor.begin.remote(task)
        except TypeError as error:
            raise cannot_send_arguments(error) from error

    def answer(self) -> tuple:
        try:
            answer = self._ray.get(self.pending)
        except self._ray.exceptions.RayActorError as error:
            raise WorkerDied(str(error).partition("\n")[0]) from error
        if answer[0] == "began":
            self.pending = self._actor.solve.remote()
        return answer

    def kill(self) -> None:
        if self._ray.is_initialized():
            self._ray.kill(self._actor)


def wait_for(workers: list[Worker], seconds: float) -> list[Worker]:
    """The workers that have answered, or have died."""
    ray = _ray()
    pending = [cast(RayWorker, each).pending for each in workers]
    limit = None if math.isinf(seconds) else seconds
    ray.wait(pending, num_returns=1, timeout=limit, fetch_local=False)
    done, _ = ray.wait(pending, num_returns=len(pending), timeout=0, fetch_local=False)
    return [each for each in workers if cast(RayWorker, each).pending in done]
