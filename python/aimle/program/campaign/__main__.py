"""`python -m aimle.program.campaign PROGRAM OUT`, which the program calls with a request as input.

Arguments are the program's file and the campaign's folder; the request is described in
experiments/engine/worker_runs.cpp.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from aimle.program.campaign.cell import Cell, Stopped
from aimle.program.campaign.gpu_pool import gpus_of, run_on_gpus
from aimle.program.campaign.ray_pool import connect, run_on_ray
from aimle.program.campaign.schedule import Schedule
from aimle.program.launch import EXPLAINED


class Signals:
    """The first SIGINT or SIGTERM as a flag; later ones change nothing."""

    def __init__(self) -> None:
        self.number = 0
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)

    def _note(self, number: int, _: object) -> None:
        self.number = self.number or number

    def __call__(self) -> bool:
        return self.number != 0


def cells_of(request: dict[str, Any], program: str, out: Path) -> list[Cell]:
    passed_on = {
        name: value
        for name, value in os.environ.items()
        if name == "LD_LIBRARY_PATH" or name.startswith("AIMLE_")
    }
    return [
        Cell(
            label=run["label"],
            folder=str(out / run["folder"]),
            program=program,
            arguments=[*run["arguments"], "--out", str(out / run["folder"])],
            needs_gpu=run["needs_gpu"],
            working_folder=os.getcwd(),
            environment=passed_on,
        )
        for run in request["runs"]
    ]


def conduct(request: dict[str, Any], schedule: Schedule) -> int:
    """Does all runs and returns the exit code."""
    workers, at_once = request["workers"], request["at_once"]
    stopping = Signals()
    try:
        if workers.startswith("ray"):
            ray = connect(workers)
            stopping = Signals()  # Ray has set handlers of its own
            run_on_ray(ray, schedule, at_once, stopping)
        else:
            run_on_gpus(schedule, gpus_of(workers), at_once, stopping)
    except ValueError as error:
        print(f"aimle: {error}", file=sys.stderr)
        return EXPLAINED
    except Stopped:
        return 128 + stopping.number
    if schedule.failures:
        index = min(schedule.failures)
        print(
            f"aimle: {len(schedule.failures)} of {len(schedule.cells)} runs failed, the first of "
            f"them {schedule.cells[index].label}: {schedule.failures[index]}; the others are "
            "complete, and --resume tries the failed ones again",
            file=sys.stderr,
        )
        return EXPLAINED
    return 0


def main() -> None:
    program, out = sys.argv[1:]
    request = json.load(sys.stdin)
    schedule = Schedule(cells_of(request, program, Path(out)), quiet=request["quiet"])
    code = conduct(request, schedule)
    sys.stderr.flush()
    if code > 128:
        os._exit(code)  # at once: Ray takes seconds to shut down
    sys.exit(code)


if __name__ == "__main__":
    main()
