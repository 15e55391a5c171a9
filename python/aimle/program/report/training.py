"""Runs of `aimle train` on a page: curves, tables, pictures.

Runs that differ only in their seed are one curve, with a band of one standard error.
"""

from collections.abc import Sequence

from aimle.program.report import Page, published
from aimle.program.report.exhibits import draw_exhibits
from aimle.program.report.files import read_png
from aimle.program.report.page import error_over_seeds
from aimle.program.report.runs import (
    Group,
    Run,
    charts_of,
    differing_settings,
    group_runs,
    mean,
    settings_of,
    spell,
)

_NOT_SHOWN = {"epoch", "seconds_engine", "seconds_evaluate", "examples_per_second"}


def _is_wide(groups: list[Group], metric: str) -> bool:
    """Whether a linear axis would show only the largest values."""
    values = [value for group in groups for value in group.curve(metric)[1]]
    return min(values) > 0 and max(values) > 20 * sorted(values)[len(values) // 2]


def _error(before: str, groups: list[Group]) -> str:
    return error_over_seeds(before, [len(group.runs) for group in groups])


def _plot(page: Page, groups: list[Group], metrics: Sequence[str], title: str) -> None:
    from aimle.program.report import figures

    shown = [m for m in metrics if any(len(group.curve(m)[0]) > 1 for group in groups)]
    if not shown:  # a single epoch is not a curve, and the table has its values
        return
    with figures.style():
        below = 0.25 * len(groups) if len(groups) > 1 else 0.0
        size = (4.2 * max(2, len(shown)), 3.4 + below)
        figure, grid = figures.subplots(1, len(shown), squeeze=False, figsize=size)
        for axes, metric in zip(grid[0], shown, strict=True):
            for number, group in enumerate(groups):
                epochs, mean, error = group.curve(metric)
                if not epochs:
                    continue
                colour, dashes = f"C{number % 10}", ["-", "--", ":"][number // 10 % 3]
                marker = "." if len(epochs) <= 30 else ""
                axes.plot(epochs, mean, dashes, color=colour, label=group.label, marker=marker)
                figures.band(axes, epochs, mean, error, colour)
            axes.set(title=metric, xlabel="epoch")
            if _is_wide(groups, metric):
                axes.set_yscale("log")
            axes.xaxis.get_major_locator().set_params(integer=True)
        if len(groups) > 1:
            lines = {line.get_label(): line for axes in grid[0] for line in axes.get_lines()}
            figure.legend(lines.values(), lines.keys(), loc="outside lower center")
        page.figure(figure, None, f"{title}{_error('; bands are one ', groups)}.")


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
            row.append(spell(values, digits=4, seeds=len(best)))
        rows.append(row)
    caption = f"At the epoch selected by the metric{_error(': mean ± ', groups)}."
    page.table(["runs", "seeds", "epoch", *metrics], rows, caption)


def _settings_tables(page: Page, groups: list[Group]) -> None:
    """The settings in which the groups differ; folded, those they share."""
    firsts = [group.runs[0] for group in groups]
    apart = differing_settings(firsts)
    differing = [name for name in apart if name != "method"]  # which the label contains
    if differing:
        rows = [
            [group.label, *(str(settings_of(first).get(name, "")) or "–" for name in differing)]
            for group, first in zip(groups, firsts, strict=True)
        ]
        page.table(["runs", *differing], rows, "Settings in which the runs differ.")
    shared = {n: value for n, value in settings_of(firsts[0]).items() if n not in apart}
    page.settings(shared, "Settings of all these runs" if len(groups) > 1 else "Settings")


def _published(page: Page, groups: list[Group]) -> None:
    experiment = groups[0].runs[0].config["experiment"]
    rows = published.rows_of(experiment)
    if rows:
        page.heading("Comparison with published numbers")
        found = [published.Comparison(published.nearest(rows, group), group) for group in groups]
        published.show(page, experiment, found)


def show_pictures(page: Page, groups: list[Group]) -> None:
    """Pictures from the first run of every group."""
    for group in groups:
        first = group.runs[0]
        for picture in sorted((first.folder / "pictures").glob("*.png")):
            with page.part_of(picture):
                page.image(read_png(picture), f"{picture.stem}: {group.label}, {first.folder}")
        with page.part_of(first.folder / "exhibits.json"):
            draw_exhibits(page, first.config["experiment"], first.folder, group.label)


def show_curves(page: Page, groups: list[Group]) -> None:
    """Curves over epochs, a table of the selected epochs, and the settings of the groups."""
    charts = charts_of(groups[0].runs[0].metrics[0])
    _plot(page, groups, charts.losses, "Losses")
    _plot(page, groups, charts.others, "Other metrics")
    _plot(page, groups, charts.step_size, "The step size of the estimator")
    _table(page, groups)
    _settings_tables(page, groups)


def fill(page: Page, runs: Sequence[Run]) -> None:
    """A section for each experiment, and the commands of all of them."""
    for name in dict.fromkeys(run.config["experiment"] for run in runs):
        groups = group_runs([run for run in runs if run.config["experiment"] == name])
        with page.section(name):
            show_curves(page, groups)
            _published(page, groups)
            show_pictures(page, groups)
    commands = list(dict.fromkeys(run.config["command"] for run in runs if "command" in run.config))
    if commands:
        with page.folded("Commands"):
            for command in commands:
                page.paragraph(f"`{command}`")
