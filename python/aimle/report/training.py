"""Runs of `aimle train` on a page: curves, tables, pictures.

Runs that differ in nothing but their seed are one curve, with a band of one standard deviation.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aimle.report import Page
from aimle.report.exhibits import draw_exhibits
from aimle.report.files import UnreadableError
from aimle.report.runs import (
    Group,
    Run,
    deviation,
    differing_settings,
    group_runs,
    mean,
    settings_of,
)

_NOT_SHOWN = {"epoch", "seconds_engine", "seconds_evaluate", "examples_per_second"}


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
        row: list[object] = [group.label, str(len(best)), f"{mean([b['epoch'] for b in best]):g}"]
        for metric in metrics:
            values = [float(b[metric]) for b in best if isinstance(b.get(metric), int | float)]
            if not values:
                row.append("–")
            elif len(values) > 1:
                row.append(f"{mean(values):.4g} ± {deviation(values):.2g}")
            else:
                row.append(f"{values[0]:.4g}")
        rows.append(row)
    page.table(
        ["settings", "seeds", "epoch", *metrics],
        rows,
        "At the epoch that the selected metric chooses: mean ± standard deviation over seeds.",
    )


def _settings_table(page: Page, groups: list[Group]) -> None:
    differing = differing_settings([group.runs[0] for group in groups])
    if not differing:
        return
    rows = [
        [group.label, *(str(settings_of(group.runs[0]).get(name, "")) or "–" for name in differing)]
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
                rows.append([metric, "measured", what, mean(values)])
    if rows:
        page.heading("Beside published numbers")
        page.table(["metric", "", "settings", "value"], rows)


def _read_picture(file: Path) -> bytes:
    content = file.read_bytes()
    if not content.startswith(b"\x89PNG") or not content.endswith(b"IEND\xaeB`\x82"):
        raise UnreadableError(file, "it is cut off or damaged: it is not a whole PNG")
    return content


def show_pictures(page: Page, groups: list[Group]) -> None:
    """What the first run of every group drew."""
    for group in groups:
        first = group.runs[0]
        for picture in sorted((first.folder / "pictures").glob("*.png")):
            with page.part_of(picture):
                page.image(_read_picture(picture), f"{picture.stem}: {group.label}, {first.folder}")
        with page.part_of(first.folder / "exhibits.json"):
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
