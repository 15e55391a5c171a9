"""Runs of `aimle train`: reads them from their folders and groups them by their settings."""

import json
import math
import os
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aimle.program.report.files import UnreadableError, read_json, read_json_lines
from aimle.program.standard_error import standard_error

# Settings in which the runs of a group may differ.
_FREE = {"seed", "checkpoint_seconds", "checkpoint_steps", "tensorboard"}


@dataclass
class Run:
    folder: Path
    config: dict[str, Any]
    metrics: list[dict[str, Any]]

    def best(self) -> dict[str, Any]:
        """The epoch selected by the run's own metric."""
        metric = self.config.get("select", "val_loss")
        if metric not in self.metrics[0]:
            metric = "train_loss"
        sign = -1 if metric in self.config.get("maximised", []) else 1
        known = [line for line in self.metrics if isinstance(line.get(metric), int | float)]
        return min(known, key=lambda line: sign * line[metric]) if known else self.metrics[-1]


@dataclass
class Group:
    """Runs that differ only in their seeds."""

    label: str
    runs: list[Run] = field(default_factory=list)

    def curve(self, metric: str) -> tuple[list[int], list[float], list[float]]:
        """Epochs, means over seeds, standard errors (NaN of one seed)."""
        values: dict[int, list[float]] = defaultdict(list)
        for run in self.runs:
            for line in run.metrics:
                if isinstance(line.get(metric), int | float):
                    values[line["epoch"]].append(float(line[metric]))
        epochs = sorted(values)
        errors = [standard_error(values[e]) for e in epochs]
        return epochs, [mean(values[e]) for e in epochs], errors


def mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else math.nan


def spell(values: Sequence[float], digits: int, seeds: int) -> str:
    """Mean ± standard error of several, the value of one, a dash for none.

    States the number of values if some seeds have none.
    """
    if not values:
        return "–"
    shown = f"{mean(values):.{digits}g}"
    if len(values) > 1:
        shown += f" ± {standard_error(values):.2g}"
    return shown if len(values) == seeds else f"{shown} ({len(values)} of {seeds} seeds)"


# The entries of a run's config.json that reports use.
_TYPES: dict[str, type] = {
    "experiment": str,
    "settings": dict,
    "select": str,
    "maximised": list,
    "command": str,
    "commit": str,
    "versions": dict,
}
_NAMES: dict[type, str] = {str: "text", dict: "an object", list: "a list"}


def read_config(folder: Path) -> dict[str, Any] | None:
    """None if the config.json is another program's; raises UnreadableError if it is damaged."""
    file = folder / "config.json"
    config = read_json(file)
    if not isinstance(config, dict) or "experiment" not in config:
        return None
    if "settings" not in config:
        raise UnreadableError(file, "it is damaged: there are no settings")
    for name, kind in _TYPES.items():
        if not isinstance(config.get(name, kind()), kind):
            raise UnreadableError(file, f"it is damaged: {name} is not {_NAMES[kind]}")
    return config


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """One object per epoch; raises UnreadableError if they are damaged."""
    file = folder / "metrics.jsonl"
    metrics = read_json_lines(file) if file.exists() else []
    for number, line in enumerate(metrics, 1):
        if type(line.get("epoch")) is not int:
            raise UnreadableError(file, f"it is damaged: line {number} names no epoch")
    return metrics


def _read_run(folder: Path) -> Run | None:
    config = read_config(folder)
    if config is None:
        return None
    metrics = read_metrics(folder)
    if not metrics:
        remedy = "continue it with --resume, or wait for its first epoch"
        raise UnreadableError(folder / "metrics.jsonl", "no epoch is complete yet", remedy)
    return Run(folder, config, metrics)


def find_runs(folder: Path) -> tuple[list[Run], list[UnreadableError]]:
    """Every run in the folder and its subfolders, and what could not be read."""
    runs, unreadable = [], []

    def add_closed(error: OSError) -> None:
        wrong = f"the folder cannot be read: {error.strerror}"
        unreadable.append(UnreadableError(Path(error.filename), wrong, "make it readable"))

    for place, below, files in os.walk(folder, onerror=add_closed):
        below.sort()
        if "config.json" not in files and "config.json" not in below:
            continue
        try:
            run = _read_run(Path(place))
        except UnreadableError as error:
            unreadable.append(error)
            continue
        if run is not None:
            runs.append(run)
    return runs, unreadable


def settings_of(run: Run) -> dict[str, Any]:
    return {k: v for k, v in run.config["settings"].items() if k not in _FREE}


def differing_settings(runs: Sequence[Run]) -> list[str]:
    """The settings in which the runs differ."""
    settings = [settings_of(run) for run in runs]
    names = list(dict.fromkeys(name for own in settings for name in own))
    return [n for n in names if len({str(own.get(n)) for own in settings}) > 1]


def _method(run: Run) -> str:
    return str(run.config["settings"].get("method", ""))


def _label(run: Run, differing: Sequence[str]) -> str:
    """The method, and what distinguishes the run from others with that method."""
    settings = settings_of(run)
    named = [name for name in differing if settings.get(name, "") != ""]
    if len(named) <= 2:
        return ", ".join([_method(run), *(f"{name}={settings[name]}" for name in named)])
    folder = run.folder.parent if run.folder.name.startswith("seed-") else run.folder
    return f"{_method(run)}, {folder}"


def group_runs(runs: Sequence[Run]) -> list[Group]:
    """One group for each combination of settings.

    Named by the method and its distinguishing settings, or by the folder if that is too long.
    """
    groups: dict[str, Group] = {}
    firsts: list[Run] = []
    for run in runs:
        key = json.dumps(settings_of(run), sort_keys=True)
        if key not in groups:
            groups[key] = Group("")
            firsts.append(run)
        groups[key].runs.append(run)
    differing = {
        method: differing_settings([run for run in firsts if _method(run) == method])
        for method in {_method(run) for run in firsts}
    }
    for group in groups.values():
        group.label = _label(group.runs[0], differing[_method(group.runs[0])])
    return list(groups.values())


@dataclass
class Charts:
    """The metrics that are drawn as curves, in order."""

    losses: list[str]
    others: list[str]
    step_size: tuple[str, ...] = ("alpha", "lambda", "count")


def charts_of(names: Iterable[str]) -> Charts:
    """Those among the names of a line of metrics."""
    known = list(names)
    losses = [name for name in known if name.endswith("_loss")]
    measured = [name for name in known if name.startswith(("test_", "val_"))]
    others = [n for n in measured if n not in losses and not n.endswith("_map")]
    return Charts(losses, others[:4])
