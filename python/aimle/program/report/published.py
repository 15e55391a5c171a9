"""Published numbers (published.json) next to ours, and the differences between the two.

published.json has, for each experiment, the source of its numbers, the data and settings that they
were measured with, and rows: a row's `settings` distinguish it from the other rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from aimle.program.report.files import read_json
from aimle.program.report.page import Page, count_of, error_over_seeds
from aimle.program.report.runs import Group, spell

Row = dict[str, Any]


@cache
def _everything() -> Row:
    return read_json(Path(__file__).with_name("published.json"))


def rows_of(experiment: str) -> list[Row]:
    """The published rows of an experiment; none if there are no published numbers."""
    return [row for row in _everything()["rows"] if row["experiment"] == experiment]


def setup_of(experiment: str) -> Row:
    """Source, data and settings of an experiment's published numbers."""
    return _everything()["experiments"][experiment]


@cache
def _digits(experiment: str, metric: str) -> int:
    """Decimals of a metric's published numbers."""
    numbers = [x for row in rows_of(experiment) for x in row["metrics"].get(metric, [])]
    return max((len(f"{number:g}".partition(".")[2]) for number in numbers), default=0)


def _theirs(value: Sequence[float], digits: int) -> str:
    """Mean ± standard deviation, or the mean alone; a dash if it was not published."""
    return " ± ".join(f"{number:.{digits}f}" for number in value) or "–"


def _describe(row: Row) -> str:
    what = ", ".join(f"{name}={value}" for name, value in row["settings"].items())
    what += f", epoch {row['epoch']}" if "epoch" in row else ""
    return what + (f" ({row['name']})" if "name" in row else "")


def _is_same(one: object, other: object) -> bool:
    """10, "10" and 10.0 are the same, and so are True and "true"."""
    try:
        return float(str(one)) == float(str(other))
    except ValueError:
        return str(one).lower() == str(other).lower()


def _settings(group: Group) -> dict[str, Any]:
    return group.runs[0].config["settings"]


def fits(row: Row, group: Group) -> bool:
    """Whether the group was run with the settings that distinguish a published row."""
    settings = _settings(group)
    return all(_is_same(settings.get(name), value) for name, value in row["settings"].items())


def _epochs(group: Group) -> int:
    return min(run.metrics[-1]["epoch"] for run in group.runs)


def nearest(rows: Sequence[Row], group: Group) -> Row:
    """The row with the fewest other settings; of its epochs, the last one reached."""
    settings, reached = _settings(group), _epochs(group)

    def distance(row: Row) -> tuple[int, bool, int]:
        others = sum(not _is_same(settings.get(n), value) for n, value in row["settings"].items())
        epoch = row.get("epoch", 0)
        return others, epoch > reached, abs(reached - epoch)

    return min((row for row in rows if any(row["metrics"].values())), key=distance)


def ours(row: Row, group: Group, metric: str) -> list[float]:
    """At the published epoch, or at the epoch selected by each run's own metric."""
    values = []
    for single in group.runs:
        lines = [line for line in single.metrics if line["epoch"] == row.get("epoch")]
        line = single.best() if "epoch" not in row else lines[0] if lines else {}
        if isinstance(line.get(metric), int | float):
            values.append(float(line[metric]))
    return values


def _data_difference(settings: Mapping[str, Any], setup: Row) -> str:
    if settings.get("data"):
        return f"data: the files in `{settings['data']}`, which may not be {setup['data']}"
    return f"data: {setup['generated'].format_map(settings)} instead of {setup['data']}"


def differences(row: Row, group: Group, setup: Row) -> list[str]:
    """How our runs differ from the published ones, according to their settings."""
    settings = dict(_settings(group))
    found = [_data_difference(settings, setup)]
    if "epoch" not in row:
        settings["epochs"] = _epochs(group)
    elif row["epoch"] > _epochs(group):
        found.append(f"epoch {row['epoch']} was not reached (last: {_epochs(group)})")
    theirs = row["settings"] | setup["settings"] | row.get("measured_with", {})
    for name, value in theirs.items():
        own = settings.get(name, "")
        if own != "" and not _is_same(own, value):
            found.append(f"{name}={str(own).lower()} instead of {str(value).lower()}")
    if setup.get("seeds", len(group.runs)) != len(group.runs):
        found.append(f"{count_of(len(group.runs), 'seed')} instead of {setup['seeds']}")
    return found


@dataclass(frozen=True)
class Comparison:
    """A published row, and our runs for it, if there are any."""

    row: Row
    group: Group | None = None

    def cells(self) -> list[object]:
        """The row, its numbers with ours, and the runs."""
        cells: list[object] = [_describe(self.row)]
        for metric, value in self.row["metrics"].items():
            digits = _digits(self.row["experiment"], metric)
            cells += [_theirs(value, digits), self._ours(metric)]
        group = self.group
        runs = f"{group.label}; {count_of(len(group.runs), 'seed')}" if group else "not run"
        return [*cells, runs]

    def _ours(self, metric: str) -> str:
        """Mean ± standard error."""
        if self.group is None:
            return "–"
        return spell(ours(self.row, self.group, metric), digits=5, seeds=len(self.group.runs))


def compare(rows: Sequence[Row], groups: Sequence[Group]) -> list[Comparison]:
    """One entry for each published row, and one more for every further group that matches it."""
    found = []
    for row in rows:
        fitting: list[Group | None] = [group for group in groups if fits(row, group)]
        found += [Comparison(row, group) for group in fitting or [None]]
    return found


def _head(setup: Row, found: Sequence[Comparison]) -> tuple[list[str], str]:
    """Columns and caption of a table, which say what each ± is."""
    theirs, our_own, caption = "published", "ours", setup["source"]
    if any(len(value) > 1 for c in found for value in c.row["metrics"].values()):
        theirs += " ±\u00a0s.d."
        runs = count_of(setup["seeds"], "run") if "seeds" in setup else "runs"
        caption += f" Published: mean ± standard deviation (s.d.) over {runs}."
    error = error_over_seeds(" Ours: mean ± ", [len(c.group.runs) for c in found if c.group])
    if error:
        our_own += " ±\u00a0s.e."
        caption += f"{error} (s.e. = standard deviation / √seeds)."
    columns = ["published settings"]
    for metric in found[0].row["metrics"]:
        columns += [f"{metric}, {theirs}", f"{metric}, {our_own}"]
    return [*columns, "our runs"], caption


def _show_measured(page: Page, setup: Row, found: Sequence[Comparison]) -> None:
    columns, caption = _head(setup, found)
    differing = [differences(c.row, c.group, setup) for c in found if c.group]
    common = [text for text in differing[0] if all(text in other for other in differing)]
    lines = [
        [*comparison.cells(), "; ".join(text for text in own if text not in common) or "–"]
        for comparison, own in zip(found, differing, strict=True)
    ]
    if all(line[-1] == "–" for line in lines):
        lines = [line[:-1] for line in lines]
    else:
        columns.append("also differs")
    note = f"**Not the same measurement.** All of our runs differ: {'; '.join(common)}."
    page.table(columns, lines, caption, note=note if common else "")


def show(page: Page, experiment: str, found: Sequence[Comparison]) -> None:
    """The published numbers next to ours, with differences; rows without runs are folded."""
    setup = setup_of(experiment)
    measured = [comparison for comparison in found if comparison.group]
    missing = [comparison for comparison in found if not comparison.group]
    if measured:
        _show_measured(page, setup, measured)
    if missing:
        what = count_of(len(missing), "published row")
        with page.folded(f"{what} without a run of the same settings"):
            columns, caption = _head(setup, missing)
            page.table(columns, [c.cells() for c in missing], caption)
