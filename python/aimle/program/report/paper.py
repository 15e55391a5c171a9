"""Draws the results of `aimle paper`: ``python -m aimle.program.report.paper FOLDER``.

One section for each table or figure of the paper, in the order of paper.json: what the paper shows,
our substitutions and reductions, the published numbers (published.json) next to ours, our figures.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aimle.program.report import Page, published, run, synth, training
from aimle.program.report.files import read_json
from aimle.program.report.page import count_of
from aimle.program.report.runs import Group, Run, find_runs, group_runs

Row = dict[str, Any]


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


def _side_by_side(page: Page, entry: Row, groups: list[Group]) -> None:
    rows = [row for row in published.rows_of(entry["experiment"]) if _belongs(row, entry)]
    if rows:
        published.show(page, entry["experiment"], published.compare(rows, groups))
    else:
        page.paragraph("There are no published numbers to compare with: the paper has a figure.")


def _read_runs(page: Page, places: Sequence[Path]) -> list[Run]:
    runs = []
    for place in places:
        found, unreadable = find_runs(place)
        runs += found
        for error in unreadable:
            page.leave_out(error)
            page.paragraph(f"Left out, because it could not be read: `{error.place}`.")
    return runs


def _show_results(page: Page, entry: Row, folder: Path) -> None:
    places = [folder / command["folder"] for command in entry["commands"]]
    if entry["experiment"] == "synth":
        for place in places:
            if (place / "study.json").exists():
                with page.part_of(place):
                    synth.fill(page, place)
        return
    groups = group_runs(_read_runs(page, places))
    _side_by_side(page, entry, groups)
    if groups:
        training.show_curves(page, groups)
        training.show_pictures(page, groups)


def _section(page: Page, number: int, entry: Row, folder: Path) -> None:
    with page.section(f"{number}. {entry['title']}"):
        page.paragraph(entry["paper"])
        if entry["commands"]:
            page.paragraph(f"Differs: {entry['substitute']} {entry['reduced']}")
            for setting in entry["settings"]:
                page.paragraph(f"Changed by the user: `{setting}`.")
            for command in entry["commands"]:
                if not command["complete"]:
                    page.paragraph(f"Not complete: `{command['folder']}`.")
        _show_results(page, entry, folder)


def _contents(page: Page, numbered: Sequence[tuple[int, Row]]) -> None:
    rows: list[list[object]] = []
    for number, entry in numbered:
        commands = entry["commands"]
        done = sum(command["complete"] for command in commands)
        done_of = f"{done} of {count_of(len(commands), 'command')}"
        took = f"{sum(command['seconds'] for command in commands):.0f} s"
        title = f"{number}. {entry['title']}"
        rows.append([title, done_of, entry["form"], took, entry["reduced"]])
    if rows:
        page.table(["table or figure", "ours", "form", "took", "reductions"], rows)


def _commands(page: Page, entries: Sequence[Row]) -> None:
    commands = [command for entry in entries for command in entry["commands"]]
    if commands:
        with page.folded("Commands"):
            rows = [[f"`{each['command']}`", f"{each['seconds']:.1f} s"] for each in commands]
            page.table(["command", "took"], rows)


def draw(folder: Path) -> Path:
    """report.html of a folder."""
    state = read_json(folder / "paper.json")
    numbered = list(enumerate(state["entries"], 1))
    begun = [(number, entry) for number, entry in numbered if entry["commands"]]
    not_run = [(number, entry) for number, entry in numbered if not entry["commands"]]
    forms = sorted({entry["form"] for _, entry in begun})
    seconds = sum(command["seconds"] for _, entry in begun for command in entry["commands"])
    page = Page(
        "Adaptive perturbation-based gradient estimation: the paper and our results",
        f"{' and '.join(forms).capitalize()} form, {seconds:.0f} s. "
        "Tables and figures of Minervini, Franceschi, Niepert, AAAI 2023.",
    )
    if "quick" in forms:
        page.paragraph(
            "In the quick form every experiment is cut to seconds. It shows that everything runs "
            "and what is measured; rankings of methods after so little training are not meaningful."
        )
    _contents(page, begun)
    for number, entry in begun:
        _section(page, number, entry, folder)
    if not_run:
        what = count_of(len(not_run), "table or figure", "tables and figures")
        with page.folded(f"Not run: {what} of the paper"):
            for number, entry in not_run:
                _section(page, number, entry, folder)
    _commands(page, state["entries"])
    return page.write(folder / "report.html", f"aimle {state['version']}. `{state['command']}`")


if __name__ == "__main__":
    run("aimle.program.report.paper", __doc__ or "", draw)
