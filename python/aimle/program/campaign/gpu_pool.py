"""The runs of a campaign on the GPUs of this machine: a thread of concurrent.futures for each GPU,
which starts one process at a time that sees this GPU alone."""

import os
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from aimle.program.campaign.cell import Result, Stopped, run_cell
from aimle.program.campaign.schedule import Schedule

_LOOK = 0.05  # seconds between looks at signals


def gpus_of(text: str) -> list[str]:
    """The GPUs of "gpus" or "gpus:0,2", as CUDA_VISIBLE_DEVICES names them; ValueError if none."""
    _, _, named = text.partition(":")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named:
        gpus = [each.strip() for each in named.split(",")]
        if not all(gpus) or len(set(gpus)) < len(gpus):
            raise ValueError(f"--workers {text}: expected different GPUs such as gpus:0,1")
    elif visible is not None:
        gpus = [each.strip() for each in visible.split(",") if each.strip()]
    else:
        import torch

        gpus = [str(each) for each in range(torch.cuda.device_count())]
    if not gpus:
        raise ValueError("--workers gpus: there is no GPU here; leave it out, or use --workers ray")
    return gpus


def run_on_gpus(
    schedule: Schedule, gpus: list[str], at_once: int, should_stop: Callable[[], bool]
) -> None:
    """Runs all, one on each GPU at a time; Stopped, once the runs have saved their work."""
    free = gpus[: at_once or None]
    running: dict[Future[Result], tuple[int, str]] = {}
    stopped = False

    def stop() -> bool:
        return stopped

    with ThreadPoolExecutor(max_workers=len(free)) as pool:
        try:
            while running or schedule.waiting:
                while free and (index := schedule.take()) is not None:
                    gpu = free.pop(0)
                    cell = schedule.cells[index]
                    running[pool.submit(run_cell, cell, gpu, stop)] = index, gpu
                ended, _ = wait(running, timeout=_LOOK, return_when=FIRST_COMPLETED)
                for future in ended:
                    index, gpu = running.pop(future)
                    free.append(gpu)
                    schedule.end(index, future.result())
                schedule.look([index for index, _ in running.values()])
                if should_stop():
                    raise Stopped
        finally:
            stopped = True
