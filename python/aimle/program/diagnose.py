"""`aimle diagnose`: reads a request from standard input, measures, writes and prints.

The program has already read the files, checked the names and locked the folder (cli/diagnose.cpp,
which writes the request). Arguments: the folder, and libraries of solvers to load. All measurements
and recommendations come from ``aimle.diagnose``.
"""

import contextlib
import json
import re
import signal
import sys
from pathlib import Path
from typing import Any

import torch

import aimle
from aimle._files import write_json
from aimle.diagnosis import Diagnosis
from aimle.diagnosis.losses import RecordedGradients, SquaredDistance
from aimle.diagnosis.measure import Problem, measure
from aimle.diagnosis.truth import Model, model_of
from aimle.program.launch import EXPLAINED
from aimle.program.progress import Progress
from aimle.program.report.files import explain
from aimle.solvers import Solver, solver_of_text

Request = dict[str, Any]


def problem_of(request: Request) -> Problem:
    """Solver, noise, theta and loss; theta is a batch of one."""
    solver = solver_of_text(
        request["solver"], torch.tensor(request["data"]) if request["data"] else None
    )
    model = model_of(None, solver)
    if request["temperature"] is not None:
        model = Model(model.noise, request["temperature"])
    shape = request["shape"]
    theta = torch.tensor(request["theta"], dtype=torch.float32).view(1, *shape)
    loss: SquaredDistance | RecordedGradients
    if request["b"] is not None:
        loss = SquaredDistance(torch.tensor(request["b"], dtype=torch.float32).view(shape))
    else:
        loss = RecordedGradients(torch.tensor(request["dy"], dtype=torch.float32).view(-1, *shape))
    return Problem(solver, model, theta, loss)


def document(request: Request, problem: Problem, found: Diagnosis, complete: bool) -> Request:
    """The contents of diagnosis.json: the request and the results."""
    solver: Solver = problem.solver
    about = {
        "structure": solver.name,
        "solver": solver.text,
        "shape": request["shape"],
        "k": getattr(solver, "k", None) if solver.takes_k else None,
        "theta": request["theta_file"],
        "loss": "|z - b|^2" if request["b"] is not None else "<dy, z>",
        "warmup": request["warmup"],
        "temperature": problem.model.temperature,
        "complete": complete,
    }
    return found.document() | about


class Run:
    """One diagnosis; the results so far are always in the file, even if the process is killed."""

    def __init__(self, request: Request, folder: Path) -> None:
        self.request, self.file = request, folder / "diagnosis.json"
        self.problem = problem_of(request)
        self.found: Diagnosis | None = None
        self.progress: Progress | None = None

    def measure(self) -> Diagnosis:
        request = self.request
        if sys.stderr.isatty() and not request["quiet"]:
            print("finding the true gradient", end="", file=sys.stderr, flush=True)
        found = measure(
            self.problem,
            nb_samples=request["samples"],
            lambdas=request["lambdas"],
            estimators=request["estimators"],
            repeats=request["repeats"],
            warmup=request["warmup"],
            truth_samples=request["long_run"],
            watch=self._watch,
        )
        self.save(complete=True)
        return found

    def save(self, complete: bool) -> None:
        """Writes diagnosis.json, if anything was measured."""
        if self.found is None or not self.found.rows:
            return
        write_json(self.file, document(self.request, self.problem, self.found, complete))

    def _watch(self, found: Diagnosis, note: str, total: int) -> None:
        if self.found is None:  # the true gradient is known; calls are timed on one thread
            torch.set_num_threads(1)
        self.found = found
        self.save(complete=False)
        if self.request["quiet"]:
            return
        if self.progress is None:
            self.progress = Progress("diagnose", total)
        else:
            self.progress.step(note)

    def close(self) -> None:
        if self.progress is not None:
            self.progress.close()


def _draw(folder: Path) -> None:
    """Draws the page and prints where it is, or why there is none."""
    try:
        from aimle.program.report.diagnose import draw

        print(draw(folder))
    except (ImportError, OSError, ValueError) as error:
        missing = "no figures were drawn; the numbers are complete without them"
        print(f"{missing} ({explain(error)})", file=sys.stderr)


def _stop(number: int, _: object) -> None:
    """Handles a signal: stops the work at the next safe point."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


def _in_words(error: Exception) -> str:
    """The message in one line, without function names, in the terms of the command line."""
    text = explain(error)
    if isinstance(error, MemoryError) or "DefaultCPUAllocator" in text:
        return "out of memory"
    return re.sub(r"\[aimle[^\]]*\] ", "", text).replace("lambda_", "lambda").partition("\n")[0]


def main(arguments: list[str] | None = None) -> int:
    name, *libraries = sys.argv[1:] if arguments is None else arguments
    request, folder = json.load(sys.stdin), Path(name)
    torch.set_num_threads(request["threads"])
    torch.manual_seed(request["seed"])
    try:
        for library in libraries:
            aimle.load_library(library)
        run = Run(request, folder)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _stop)
        with contextlib.closing(run):
            found = run.measure()
    except (ValueError, TypeError, RuntimeError, OSError, MemoryError) as error:
        print(f"aimle: {_in_words(error)}", file=sys.stderr)
        return EXPLAINED
    output: Any = sys.stdout
    output.reconfigure(errors="surrogateescape")  # folder names may be arbitrary bytes
    print(f"{found}\n\n{run.file}", flush=True)
    _draw(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
