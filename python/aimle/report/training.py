"""Runs of `aimle train` on a page: curves, tables, pictures.

Runs that differ in nothing but their seed are one curve, with a band of one standard deviation.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aimle.report import Page
from aimle.report.exhibits import draw_exhibits

# What the runs of a group may differ in.
_FREE = {"seed", "checkpoint_seconds", "checkpoint_steps"}
_NOT_SHOWN = {"epoch", "seconds_engine", "seconds_evaluate", "examples_per_second"}


@dataclass
class Run:
    folder: Path
    config: dict[str, Any]
    metrics: list[dict[str, Any]]

    def best(self) -> dict[str, Any]:
        """The epoch that the run's own metric chooses."""
        metric = self.config.get("select", "val_loss")
        if metric not in self.metrics[0]:
            metric = "train_loss"
        sign = -1 if metric in self.config.get("maximised", []) else 1
        known = [line for line in self.metrics if isinstance(line.get(metric), int | float)]
        return min(known, key=lambda line: sign * line[metric]) if known else self.metrics[-1]


@dataclass
class Group:
    """Runs that differ in their seeds only."""

    label: str
    runs: list[Run] = field(default_factory=list)

    def curve(self, metric: str) -> tuple[list[int], list[float], list[float]]:
        """Epochs, means over seeds, standard deviations."""
        values: dict[int, list[float]] = defaultdict(list)
        for run in self.runs:
            for line in run.metrics:
                if isinstance(line.get(metric), int | float):
                    values[line["epoch"]].append(float(line[metric]))
        epochs = sorted(values)
        return epochs, [_mean(values[e]) for e in epochs], [_deviation(values[e]) for e in epochs]


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else math.nan


def _deviation(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def _read_run(folder: Path) -> Run | None:
    """None if the config.json is another program's; a ValueError if a file is damaged."""
    config = json.loads((folder / "config.json").read_text())
    if not isinstance(config, dict) or "experiment" not in config:
        return None
    metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    if not isinstance(config.get("settings"), dict):
        raise ValueError("config.json has no settings")
    if not isinstance(config.get("select", ""), str):
        raise ValueError("select in config.json is no text")
    if not all(isinstance(line, dict) for line in metrics):
        raise ValueError("metrics.jsonl has lines that are no objects")
    return Run(folder, config, metrics)


def find_runs(folder: Path) -> list[Run]:
    """Every run in the folder and below that has measured something.

    What cannot be read is named on standard error and left out.
    """
    runs = []
    for config_file in sorted(folder.rglob("config.json")):
        if not config_file.with_name("metrics.jsonl").is_file():
            continue
        try:
            run = _read_run(config_file.parent)
        except (OSError, ValueError) as error:
            print(f"left out: {config_file.parent} could not be read: {error}", file=sys.stderr)
            continue
        if run is not None and run.metrics:
            runs.append(run)
    return runs


def _settings(run: Run) -> dict[str, Any]:
    return {k: v for k, v in run.config["settings"].items() if k not in _FREE}


def _differing(runs: Sequence[Run]) -> list[str]:
    """The settings that tell the runs apart."""
    names = list(dict.fromkeys(name for run in runs for name in _settings(run)))
    return [n for n in names if len({str(_settings(run).get(n)) for run in runs}) > 1]


def group_runs(runs: Sequence[Run]) -> list[Group]:
    """One group for each combination of settings.

    Named by the method and what tells them apart, or by the folder where that is too much.
    """
    differing = [name for name in _differing(runs) if name != "method"]
    groups: dict[str, Group] = {}
    for run in runs:
        settings = _settings(run)
        method = str(settings.get("method", ""))
        parts = [f"{n}={settings[n]}" for n in differing if settings.get(n, "") != ""]
        key = json.dumps(settings, sort_keys=True)
        folder = run.folder.parent if run.folder.name.startswith("seed-") else run.folder
        label = ", ".join([method, *parts]) if len(parts) <= 2 else f"{method}, {folder}"
        groups.setdefault(key, Group(label)).runs.append(run)
    return list(groups.values())


def _is_wide(groups: list[Group], metric: str) -> bool:
    """Whether a linear axis would show the largest values alone."""
    values = [value for group in groups for value in group.curve(metric)[1]]
    return min(values) > 0 and max(values) > 20 * sorted(values)[len(values) // 2]


def _plot(page: Page, groups: list[Group], metrics: Sequence[str], caption: str) -> None:
    from aimle.report import figures

    shown = [m for m in metrics if any(group.curve(m)[0] for group in groups)]
    if not shown:
        return
    with figures.style():
        below = 0.25 * len(groups) if len(groups) > 1 else 0.0
        size = (4.2 * max(2, len(shown)), 3.4 + below)
        figure, grid = figures.subplots(1, len(shown), squeeze=False, figsize=size)
        for axes, metric in zip(grid[0], shown, strict=True):
            for number, group in enumerate(groups):
                epochs, mean, deviation = group.curve(metric)
                if not epochs:
                    continue
                colour, dashes = f"C{number % 10}", ["-", "--", ":"][number // 10 % 3]
                marker = "." if len(epochs) <= 30 else ""
                axes.plot(epochs, mean, dashes, color=colour, label=group.label, marker=marker)
                figures.band(axes, epochs, mean, deviation, colour)
            axes.set(title=metric, xlabel="epoch")
            if _is_wide(groups, metric):
                axes.set_yscale("log")
            axes.xaxis.get_major_locator().set_params(integer=True)
        if len(groups) > 1:
            lines = {line.get_label(): line for axes in grid[0] for line in axes.get_lines()}
            figure.legend(lines.values(), lines.keys(), loc="outside lower center")
        page.figure(figure, None, caption)


def _table(page: Page, groups: list[Group]) -> None:
    first = groups[0].runs[0]
    metrics = [
        name
        for name in first.metrics[0]
        if name not in _NOT_SHOWN and isinstance(first.metrics[0][name], int | float)
    ]
    metrics.sort(key=lambda name: [not name.startswith(start) for start in ("test_", "val_")])
    rows: list[list[object]] = []
    for group in groups:
        best = [run.best() for run in group.runs]
        row: list[object] = [group.label, str(len(best)), f"{_mean([b['epoch'] for b in best]):g}"]
        for metric in metrics:
            values = [float(b[metric]) for b in best if isinstance(b.get(metric), int | float)]
            if not values:
                row.append("–")
            elif len(values) > 1:
                row.append(f"{_mean(values):.4g} ± {_deviation(values):.2g}")
            else:
                row.append(f"{values[0]:.4g}")
        rows.append(row)
    page.table(
        ["settings", "seeds", "epoch", *metrics],
        rows,
        "At the epoch that the selected metric chooses: mean ± standard deviation over seeds.",
    )


def _settings_table(page: Page, groups: list[Group]) -> None:
    differing = _differing([group.runs[0] for group in groups])
    if not differing:
        return
    rows = [
        [group.label, *(str(_settings(group.runs[0]).get(name, "")) or "–" for name in differing)]
        for group in groups
    ]
    page.table(["runs", *differing], rows, "What tells the runs apart.")


def _last(run: Run, metric: str) -> float | None:
    """Its last value; some are measured in some epochs only."""
    known = [line[metric] for line in run.metrics if isinstance(line.get(metric), int | float)]
    return float(known[-1]) if known else None


def _published(page: Page, groups: list[Group]) -> None:
    published = groups[0].runs[0].config.get("published", [])
    rows: list[list[object]] = []
    for metric in dict.fromkeys(entry["metric"] for entry in published):
        rows += [
            [metric, "published", entry["what"], float(entry["value"])]
            for entry in published
            if entry["metric"] == metric
        ]
        for group in groups:
            lasts = [_last(run, metric) for run in group.runs]
            values = [value for value in lasts if value is not None]
            if values:
                epochs = max(run.metrics[-1]["epoch"] for run in group.runs)
                what = f"{group.label}; {epochs} epoch(s), {len(values)} seed(s)"
                rows.append([metric, "measured", what, _mean(values)])
    if rows:
        page.heading("Beside published numbers")
        page.table(["metric", "", "settings", "value"], rows)


def show_pictures(page: Page, groups: list[Group]) -> None:
    """What the first run of every group drew."""
    for group in groups:
        for picture in sorted((group.runs[0].folder / "pictures").glob("*.png")):
            page.image(picture, f"{picture.stem}: {group.label}, {group.runs[0].folder}")
        first = group.runs[0]
        draw_exhibits(page, first.config["experiment"], first.folder, group.label)


def show_curves(page: Page, groups: list[Group]) -> None:
    """Curves over epochs, the chosen epochs in a table, and what tells the groups apart."""
    first = groups[0].runs[0].metrics[0]
    losses = [m for m in first if m.endswith("_loss")]
    others = [
        m
        for m in first
        if m.startswith(("test_", "val_")) and m not in losses and not m.endswith("_map")
    ]
    _plot(page, groups, losses, "Losses; bands are one standard deviation over seeds.")
    _plot(page, groups, others[:4], "Other metrics.")
    _plot(page, groups, ["alpha", "lambda", "count"], "The step size of the estimator.")
    _table(page, groups)
    _settings_table(page, groups)


def fill(page: Page, runs: Sequence[Run]) -> None:
    """A section for each experiment, and the commands of all."""
    for name in dict.fromkeys(run.config["experiment"] for run in runs):
        groups = group_runs([run for run in runs if run.config["experiment"] == name])
        page.heading(name)
        show_curves(page, groups)
        _published(page, groups)
        show_pictures(page, groups)
    if runs:
        page.heading("Commands")
    for command in dict.fromkeys(run.config.get("command", "") for run in runs):
        page.paragraph(f"`{command}`")
