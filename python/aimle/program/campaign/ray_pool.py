"""The runs of a campaign as tasks of a Ray cluster: `pip install aimle[ray]`."""

import socket
import time
from collections.abc import Callable
from typing import Any

from aimle.program.campaign import cell as cell_module
from aimle.program.campaign.cell import SECONDS_TO_SAVE, Cell, Result, Stopped, run_cell
from aimle.program.campaign.schedule import Schedule

_LOOK = 0.05  # seconds between looks at signals
_SECONDS_TO_CONNECT = 5.0  # Ray itself tries for minutes


def connect(text: str) -> Any:
    """Ray, connected to the cluster of "ray" or "ray:ADDRESS"; ValueError if that fails.

    Without an address: that of RAY_ADDRESS, else the cluster of this machine, else one is started
    here for as long as the campaign lasts.
    """
    try:
        import ray
    except ImportError as error:
        raise ValueError("--workers ray needs Ray: pip install aimle[ray]") from error
    _, _, address = text.partition(":")
    try:
        _check_address(address)
        ray.init(
            address=address or None,
            log_to_driver=False,
            logging_level="ERROR",
            **({} if address else {"include_dashboard": False}),
        )
    except (OSError, RuntimeError, ValueError) as error:
        where = address or "this machine"
        raise ValueError(f"--workers {text}: no Ray cluster at {where}: {error}") from error
    # By value: the cluster's workers need not have this package, nor import torch with it.
    ray.cloudpickle.register_pickle_by_value(cell_module)
    return ray


def _check_address(address: str) -> None:
    """OSError if nobody listens at HOST:PORT."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=_SECONDS_TO_CONNECT).close()


def _submit(ray: Any, cell: Cell) -> Any:
    # Ray sets CUDA_VISIBLE_DEVICES to the GPU that it gives.
    task = ray.remote(num_cpus=1, num_gpus=int(cell.needs_gpu), max_retries=0)(run_cell)
    return task.remote(cell)


def _result(ray: Any, task: Any) -> Result:
    try:
        return ray.get(task)
    except ray.exceptions.RayTaskError as error:
        return Result("failed", str(error).strip().splitlines()[-1])
    except ray.exceptions.RayError as error:  # the worker or its machine
        return Result("died", str(error).partition("\n")[0])


def run_on_ray(ray: Any, schedule: Schedule, at_once: int, should_stop: Callable[[], bool]) -> None:
    """Runs all; Stopped, once the runs have saved their work."""
    if any(cell.needs_gpu for cell in schedule.cells) and not ray.cluster_resources().get("GPU"):
        schedule.say("the cluster has no GPU: the runs wait for one (--device cpu needs none)")
    running: dict[Any, int] = {}
    try:
        while running or schedule.waiting:
            # All of them, unless --threads limits them: Ray has the queue, and may add machines.
            while (not at_once or len(running) < at_once) and (
                index := schedule.take()
            ) is not None:
                running[_submit(ray, schedule.cells[index])] = index
            ended, _ = ray.wait(list(running), timeout=_LOOK, fetch_local=False)
            for task in ended:
                schedule.end(running.pop(task), _result(ray, task))
            schedule.look(list(running.values()))
            if should_stop():
                raise Stopped
    except BaseException:
        _cancel(ray, list(running))
        raise


def _cancel(ray: Any, tasks: list[Any]) -> None:
    """Stops the tasks and waits until their runs have saved their work."""
    for task in tasks:
        ray.cancel(task)
    deadline = time.monotonic() + SECONDS_TO_SAVE
    while tasks and time.monotonic() < deadline:
        _, tasks = ray.wait(tasks, num_returns=len(tasks), timeout=_LOOK, fetch_local=False)
