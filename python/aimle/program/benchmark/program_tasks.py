"""Tasks that are experiments of the program: campaigns of ``aimle train``.

Runs of one campaign share the GPU, so jobs are grouped into as few campaigns as possible. An
interrupted campaign is resumed if the task's arguments and the commit are the same.
"""

import fcntl
import json
import math
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aimle
from aimle._files import write_atomically
from aimle.program import launch
from aimle.program.benchmark.models import solves_of
from aimle.program.benchmark.task import Context, Job, Outcome, Task, TaskError
from aimle.solvers import Solver

_POLL_SECONDS = 1.0
_NAMES_OF_FILES = {"": "", "mnist": "MNIST", "films": "film reviews"}


@dataclass(frozen=True)
class ProgramTask(Task):
    """An experiment of ``aimle train`` with fixed arguments.

    files: "mnist" or "films" if the experiment reads them from --data; "" if it generates its data.
    without_files: the name of the generated data; empty if the files are required.
    solver: what the experiment solves, to count the calls.
    extra: further options of some estimators.
    """

    experiment: str
    arguments: str
    quick_arguments: str
    without_files: str
    solver: Solver
    files: str = ""
    extra: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def data_name(self, context: Context) -> str:
        return _NAMES_OF_FILES[self.files] if self._folder(context) else self.without_files

    def missing(self, context: Context) -> str:
        if launch.find() is None:
            return "needs the program `aimle`: the command `aimle` says how to add it"
        if not self.data_name(context):
            return f"needs {_NAMES_OF_FILES[self.files]}: pass --data DIR with {self.files_wanted}"
        return super().missing(context)

    @property
    def files_wanted(self) -> str:
        return "imdb/ and eraser_movies/ in it" if self.files == "films" else "mnist/ in it"

    def run(self, jobs: list[Job], context: Context) -> None:
        out = context.work / self.name
        with _only_process_in(out):
            self._run(jobs, out, context)

    def _run(self, jobs: list[Job], out: Path, context: Context) -> None:
        _begin(out, [*self._arguments(context), context.commit])
        left = {self._folder_of(job, out): job for job in jobs}
        while left:
            before = len(left)
            failure = ""
            for axes, seeds in self._campaigns(list(left.values())):
                failure = self._run_campaign(axes, seeds, left, out, context)
                if failure:
                    break
            if failure and len(left) == before:
                raise TaskError(failure)
            if not failure and left:
                raise TaskError(f"{len(left)} runs of {self.name} wrote no result; see {out}")
        shutil.rmtree(out)

    def _folder(self, context: Context) -> Path | None:
        """Where the files are, if they were given; --quick does not use all of MNIST."""
        if not self.files or context.data is None:
            return None
        if self.files == "films":
            return context.data if (context.data / "imdb").is_dir() else None
        if context.quick:
            return None
        places = (context.data / "mnist", context.data)
        return next((place for place in places if any(place.glob("train-images*"))), None)

    def _arguments(self, context: Context) -> list[str]:
        arguments = (self.quick_arguments if context.quick else self.arguments).split()
        if folder := self._folder(context):
            arguments += ["--data", str(folder)]
        if self.files == "films":
            arguments += ["--vectors", str(context.work / "film_vectors.txt")]
        arguments += ["--device", context.device, "--threads", str(context.threads)]
        return [*arguments, *(["--tf32", "true"] if context.device == "cuda" else [])]

    def _options(self, job: Job) -> dict[str, str]:
        estimator = job.method.estimator
        own = job.method.resolved(self.ones, self.samples)
        return {"method": estimator, **self.extra.get(estimator, {}), **own}

    def _folder_of(self, job: Job, out: Path) -> Path:
        cell = ",".join(f"{name}={value}" for name, value in self._options(job).items())
        return out / cell / f"seed-{job.seed}"

    def _campaigns(self, jobs: list[Job]) -> list[tuple[dict[str, list[str]], list[int]]]:
        """Axes and seeds whose combinations are exactly these jobs."""
        seeds_of: dict[tuple[tuple[str, str], ...], list[int]] = defaultdict(list)
        for job in jobs:
            seeds_of[tuple(self._options(job).items())].append(job.seed)
        lambdas_of: dict[tuple, list[str]] = defaultdict(list)
        for options, seeds in seeds_of.items():
            others = tuple(pair for pair in options if pair[0] != "lambda")
            value = dict(options).get("lambda", "")
            lambdas_of[others, tuple(sorted(seeds))].append(value)
        methods_of: dict[tuple, list[str]] = defaultdict(list)
        for (others, seeds), lambdas in lambdas_of.items():
            method = dict(others)["method"]
            rest = tuple(pair for pair in others if pair[0] != "method")
            methods_of[rest, tuple(lambdas), seeds].append(method)
        campaigns = []
        for (rest, lambdas, seeds), methods in methods_of.items():
            axes = {"method": methods, **{name: [value] for name, value in rest}}
            if lambdas != ("",):
                axes["lambda"] = list(lambdas)
            campaigns.append((axes, list(seeds)))
        return campaigns

    def _run_campaign(
        self,
        axes: dict[str, list[str]],
        seeds: list[int],
        left: dict[Path, Job],
        out: Path,
        context: Context,
    ) -> str:
        """Runs it, records finished runs and removes them from `left`; returns an error message."""
        arguments = ["train", self.experiment, *self._arguments(context)]
        for name, values in axes.items():
            arguments += ["--grid", f"{name}={','.join(values)}"]
        arguments += ["--seeds", ",".join(map(str, seeds))]
        arguments += ["--out", str(out), "--resume", "--quiet"]
        context.say(f"aimle {' '.join(arguments)}")
        log = out / "log.txt"
        with log.open("w") as messages:
            process = subprocess.Popen(
                [str(launch.find()), *arguments],
                env=launch.environment(),
                stderr=messages,
                stdout=subprocess.DEVNULL,
            )
            try:
                while process.poll() is None:
                    try:
                        process.wait(_POLL_SECONDS)
                    except subprocess.TimeoutExpired:
                        self._record_finished(left, context)
            except BaseException:
                process.terminate()  # the process saves a checkpoint
                process.wait()
                raise
            finally:
                self._record_finished(left, context)
        if process.returncode == 0:
            return ""
        said = log.read_text(errors="replace").strip()
        message = said.splitlines()[-1] if said else "aimle train failed"
        self._record_diverged(message, left, context)
        return message

    def _record_finished(self, left: dict[Path, Job], context: Context) -> None:
        for folder, job in list(left.items()):
            outcome = self._outcome(folder, job)
            if outcome is not None:
                config = json.loads((folder / "config.json").read_text())
                context.record(self.row(job, outcome, context, config["commit"][:12]))
                del left[folder]

    def _record_diverged(self, message: str, left: dict[Path, Job], context: Context) -> None:
        for folder, job in list(left.items()):
            if "is not finite" in message and re.search(rf"{re.escape(str(folder))}\b", message):
                context.record(self.row(job, Outcome(math.nan, 0, 0, 0.0), context))
                del left[folder]

    def _outcome(self, folder: Path, job: Job) -> Outcome | None:
        """None unless the run in this folder has completed all its epochs."""
        files = (folder / "config.json", folder / "metrics.jsonl")
        if not all(file.exists() for file in files):
            return None
        settings = json.loads(files[0].read_text())["settings"]
        epochs = [json.loads(line) for line in files[1].read_text().splitlines()]
        epochs = [epoch for epoch in epochs if epoch["epoch"] > 0]
        if len(epochs) < settings["epochs"]:
            return None
        if self.metric not in epochs[-1]:
            raise TaskError(f"{files[1]} has no {self.metric}; it has {', '.join(epochs[-1])}")
        seen = [round(epoch["examples_per_second"] * epoch["seconds"]) for epoch in epochs]
        solves = solves_of(aimle.estimator(job.method.estimator, self.solver))
        return Outcome(
            value=epochs[-1][self.metric],
            steps=sum(math.ceil(examples / settings["batch"]) for examples in seen),
            solver_calls=sum(seen) * settings.get("rows", 1) * self.samples * solves,
            seconds=sum(epoch["seconds"] for epoch in epochs),
        )


@contextmanager
def _only_process_in(folder: Path) -> Iterator[None]:
    """Locks the folder with a file next to it: the program locks the folder itself."""
    file = folder.with_name(f"{folder.name}.lock")
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TaskError(
                f"{folder} is in use by another process: wait until it ends, or choose another "
                "folder with --work"
            ) from None
        yield


def _begin(out: Path, stamp: list[str]) -> None:
    """Creates the folder, and empties it if it holds runs of other arguments or another commit."""
    file = out / "stamp.json"
    if out.exists() and (not file.exists() or json.loads(file.read_text()) != stamp):
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(file, json.dumps(stamp).encode())
