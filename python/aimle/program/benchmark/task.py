"""The interface of the tasks of the comparison."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from aimle.program.benchmark.methods import Method
from aimle.program.benchmark.models import Probe
from aimle.program.benchmark.results import Row


class TaskError(Exception):
    """A run failed; the message gives the reason. Other tasks are not affected."""


class Job(NamedTuple):
    """One run: a method with its settings, and a seed."""

    method: Method
    seed: int


@dataclass(frozen=True)
class Context:
    """Where and how the runs of a command are executed."""

    quick: bool
    device: str
    device_name: str
    data: Path | None
    work: Path
    threads: int
    commit: str
    record: Callable[[Row], None]
    say: Callable[[str], None]


@dataclass(frozen=True)
class Task:
    """A model to train for a fixed length, with one metric.

    ones, samples: K and S, from which the number K/sqrt(S) of a method is computed.
    packages: additional packages that must be installed.
    probe: from a seed, the task's model after a short training, for a diagnosis.
    """

    name: str
    title: str
    metric: str
    methods: tuple[str, ...]
    lambdas: tuple[str, ...]
    ones: float
    samples: int
    length: str
    quick_length: str
    packages: tuple[str, ...] = field(default=(), kw_only=True)
    probe: Callable[[int], Probe] = field(kw_only=True)

    @property
    def higher_is_better(self) -> bool:
        """Whether the metric is to be maximised."""
        return self.metric in ("test_accuracy", "test_optimal", "val_elbo")

    def data_name(self, context: Context) -> str:
        """The data set, for the table."""
        raise NotImplementedError

    def run(self, jobs: list[Job], context: Context) -> None:
        """Trains every job and records its row as soon as it is finished."""
        raise NotImplementedError

    def missing(self, context: Context) -> str:
        """Why the task cannot be run on this machine, with the remedy; empty if it can."""
        absent = [name for name in self.packages if importlib.util.find_spec(_module(name)) is None]
        if absent:
            return f"needs {', '.join(absent)}: pip install {' '.join(self.packages)}"
        return ""

    def length_of(self, context: Context) -> str:
        return self.quick_length if context.quick else self.length

    def row(self, job: Job, outcome: Outcome, context: Context, commit: str = "") -> Row:
        return Row(
            task=self.name,
            data=self.data_name(context),
            length=self.length_of(context),
            method=job.method.name,
            setting=job.method.setting,
            seed=job.seed,
            metric=self.metric,
            value=outcome.value,
            steps=outcome.steps,
            solver_calls=outcome.solver_calls,
            seconds=outcome.seconds,
            commit=commit or context.commit,
            device=outcome.device or context.device_name,
        )


class Outcome(NamedTuple):
    """The result and the cost of a run."""

    value: float
    steps: int
    solver_calls: int
    seconds: float
    device: str = ""


def _module(package: str) -> str:
    return {"scikit-learn": "sklearn"}.get(package, package)


@dataclass(frozen=True)
class PythonTask(Task):
    """A task that trains in this process, on the CPU.

    train(settings, estimator, seed, quick) returns the value of the metric, the number of steps and
    the number of solver calls.
    """

    data: str
    train: Callable[[str, dict[str, str], int, bool], tuple[float, int, int]]

    def data_name(self, context: Context) -> str:
        return self.data

    def run(self, jobs: list[Job], context: Context) -> None:
        for job in jobs:
            settings = job.method.resolved(self.ones, self.samples)
            start = time.perf_counter()
            try:
                value, steps, calls = self.train(
                    job.method.estimator, settings, job.seed, context.quick
                )
            except (TypeError, ValueError) as error:  # settings that the estimator does not take
                raise TaskError(f"{job.method.name}: {error}") from error
            outcome = Outcome(value, steps, calls, time.perf_counter() - start, "cpu")
            context.record(self.row(job, outcome, context))
