"""Draws what `aimle paper` computed: ``python -m aimle.report.paper FOLDER``.

One section for each table or figure of the paper, in the order of paper.json: what the paper shows,
what ours substitutes and reduces, the published numbers (published.json) beside ours, our figures.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aimle.report import Page, run, synth, training
from aimle.report.files import read_json
from aimle.report.runs import Group, Run, find_runs, group_runs

Row = dict[str, Any]


def _spell(values: Sequence[float]) -> str:
    """Mean ± standard deviation of several, the value of one, a dash for none."""
    if not values:
        return "–"
    mean = f"{statistics.fmean(values):.5g}"
    return f"{mean} ± {statistics.stdev(values):.2g}" if len(values) > 1 else mean


def _theirs(value: Sequence[float]) -> str:
    """Mean ± standard deviation, or the mean alone; a dash for what was not published."""
    return " ± ".join(f"{number:g}" for number in value) or "–"


def fits(row: Row, group: Group) -> bool:
    """Whether the group was run with the settings of a published row."""
    settings = group.runs[0].config["settings"]
    return all(str(settings.get(name)) == str(value) for name, value in row["settings"].items())


def ours(row: Row, group: Group, metric: str) -> list[float]:
    """At the published epoch, or at the one that each run's own metric chooses."""
    values = []
    for single in group.runs:
        lines = [line for line in single.metrics if line["epoch"] == row.get("epoch")]
        line = single.best() if "epoch" not in row else lines[0] if lines else {}
        if isinstance(line.get(metric), int | float):
            values.append(float(line[metric]))
    return values


def compare(rows: Sequence[Row], groups: Sequence[Group]) -> list[list[object]]:
    """A line for each published row, and one more for every further group that fits it."""
    lines: list[list[object]] = []
    for row in rows:
        what = ", ".join(f"{name}={value}" for name, value in row["settings"].items())
        what += f", epoch {row['epoch']}" if "epoch" in row else ""
        what += f" ({row['name']})" if "name" in row else ""
        fitting: list[Group | None] = [g for g in groups if fits(row, g)]
        for group in fitting or [None]:
            line: list[object] = [what]
            for metric, value in row["metrics"].items():
                line += [_theirs(value), _spell(ours(row, group, metric) if group else [])]
            line.append(f"{group.label}; {len(group.runs)} seed(s)" if group else "not run")
            lines.append(line)
    return lines


def _belongs(row: Row, entry: dict[str, Any]) -> bool:
    """By the names of entries: l2x-taste, nri-t10, dvae-k1, warcraft-12."""
    kind, _, part = entry["name"].partition("-")
    settings = row["settings"]
    wanted = {
        "l2x": settings.get("aspect"),
        "nri": f"t{settings.get('frames')}",
        "dvae": f"k{settings.get('k')}",
        "warcraft": str(settings.get("cells")),
    }
    return row["experiment"] == kind and wanted.get(kind) == part


def _side_by_side(page: Page, published: Row, entry: Row, groups: list[Group]) -> None:
    rows = [row for row in published["rows"] if _belongs(row, entry)]
    if not rows:
        page.paragraph("No published number to put beside: the paper has a figure only.")
        return
    columns = ["published settings"]
    for metric in rows[0]["metrics"]:
        columns += [f"{metric}, published", f"{metric}, ours"]
    page.table(
        [*columns, "our runs"],
        compare(rows, groups),
        published["sources"][entry["experiment"]] + " Ours: see what differs above.",
    )


def _read_runs(page: Page, places: Sequence[Path]) -> list[Run]:
    runs = []
    for place in places:
        found, unreadable = find_runs(place)
        runs += found
        for error in unreadable:
            page.leave_out(error)
            page.paragraph(f"Left out, because it could not be read: `{error.place}`.")
    return runs


def _section(page: Page, number: int, entry: Row, folder: Path, published: Row) -> None:
    page.heading(f"{number}. {entry['title']}")
    page.paragraph(entry["paper"])
    page.paragraph(f"Differs: {entry['substitute']} {entry['reduced']}")
    for setting in entry["settings"] if entry["commands"] else []:
        page.paragraph(f"Changed by the user: `{setting}`.")
    for command in entry["commands"]:
        if not command["complete"]:
            page.paragraph(f"Not complete: `{command['folder']}`.")
    places = [folder / command["folder"] for command in entry["commands"]]
    if entry["experiment"] == "synth":
        for place in places:
            if (place / "study.json").exists():
                with page.part_of(place):
                    synth.fill(page, place)
        if not places:
            page.paragraph("Not run.")
        return
    groups = group_runs(_read_runs(page, places))
    _side_by_side(page, published, entry, groups)
    if groups:
        training.show_curves(page, groups)
        training.show_pictures(page, groups)


def _contents(page: Page, entries: Sequence[Row]) -> None:
    rows: list[list[object]] = []
    for number, entry in enumerate(entries, 1):
        commands = entry["commands"]
        done = sum(command["complete"] for command in commands)
        state = "not run" if not commands else f"{done} of {len(commands)} commands"
        seconds = sum(command["seconds"] for command in commands)
        what = f"{number}. {entry['title']}"
        rows.append([what, state, entry["form"], f"{seconds:.0f} s", entry["reduced"]])
    page.table(["table or figure", "ours", "form", "took", "reductions"], rows)


def draw(folder: Path) -> Path:
    """report.html of a folder."""
    state = read_json(folder / "paper.json")
    published = read_json(Path(__file__).with_name("published.json"))
    entries = state["entries"]
    forms = sorted({entry["form"] for entry in entries if entry["commands"]})
    seconds = sum(command["seconds"] for entry in entries for command in entry["commands"])
    page = Page(
        "Adaptive perturbation-based gradient estimation: the paper, and ours",
        f"{' and '.join(forms)} form, {seconds:.0f} s. Tables and figures of Minervini, "
        "Franceschi, Niepert, AAAI 2023.",
    )
    if "quick" in forms:
        page.paragraph(
            "In the quick form every experiment is cut to seconds. It shows that everything runs "
            "and what is measured; orders of methods after so little training mean little."
        )
    _contents(page, entries)
    for number, entry in enumerate(entries, 1):
        _section(page, number, entry, folder, published)
    page.heading("Commands")
    for entry in entries:
        for command in entry["commands"]:
            page.paragraph(f"`{command['command']}`: {command['seconds']:.1f} s")
    path = folder / "report.html"
    page.write(path, f"aimle {state['version']}. `{state['command']}`")
    return path


if __name__ == "__main__":
    sys.exit(run("aimle.report.paper", __doc__ or "", draw))
