"""Draws runs and studies: ``python -m aimle.program.report.collection FOLDER… --out report.html``.

Training runs come first, grouped by experiment, followed by gradient studies and diagnoses, each in
its own section. Nothing is written into their folders.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

from aimle.program.launch import exit_with
from aimle.program.report import Page, training
from aimle.program.report.command import attempt
from aimle.program.report.files import UnreadableError
from aimle.program.report.page import count_of
from aimle.program.report.runs import Run
from aimle.program.report.runs import find_runs as runs_below


def _modules() -> dict[str, ModuleType]:
    """The functions that draw a study, by the file that identifies its folder."""
    from aimle.program.report import diagnose, synth  # these need matplotlib

    return {"study.json": synth, "diagnosis.json": diagnose}


def find_runs(folders: Iterable[Path]) -> tuple[list[Run], list[UnreadableError]]:
    """Each folder once, even if it is given together with one that contains it."""
    runs: dict[Path, Run] = {}
    unreadable: dict[Path, UnreadableError] = {}
    for folder in folders:
        found, damaged = runs_below(folder)
        runs |= {run.folder.resolve(): run for run in found}
        unreadable |= {error.place.resolve(): error for error in damaged}
    return list(runs.values()), list(unreadable.values())


def find_studies(folders: Iterable[Path]) -> list[tuple[Path, ModuleType]]:
    """Folders of studies and the functions that draw them, each once."""
    studies: dict[Path, tuple[Path, ModuleType]] = {}
    for folder in folders:
        for name, module in _modules().items():
            for file in sorted(folder.rglob(name)):
                studies.setdefault(file.resolve(), (file.parent, module))
    return list(studies.values())


def _title(experiments: Sequence[str], studies: int) -> str:
    parts = ["Training runs: " + ", ".join(experiments)] if experiments else []
    parts += ["gradient studies" if experiments else "Gradient studies"] if studies else []
    return "; ".join(parts)


def _add_study(page: Page, folder: Path, module: ModuleType) -> bool:
    """Adds the section; False if the folder is damaged."""
    with page.part_of(folder):
        title, about = module.headline(folder)
        with page.section(f"{title} `{folder}`"):
            page.paragraph(about)
            module.fill(page, folder)
        return True
    return False


def _footer(runs: Sequence[Run]) -> str:
    """The versions and commits that the runs were made with."""
    made_with: dict[str, None] = {}
    for run in runs:
        versions = [f"{name} {value}" for name, value in run.config.get("versions", {}).items()]
        commit = run.config.get("commit", "")
        made_with[", ".join([*versions, *([f"commit {commit[:12]}"] if commit else [])])] = None
    return "; ".join(filter(None, made_with))


def draw(folders: Sequence[Path], out: Path) -> bool:
    """Writes the page; False if nothing can be read. Raises ValueError without any runs."""
    runs, unreadable = find_runs(folders)
    studies = find_studies(folders)
    if not runs and not unreadable and not studies:
        raise ValueError("no runs and no studies in " + ", ".join(map(str, folders)))
    page = Page("", save_figures=False)
    for error in unreadable:
        page.leave_out(error)
    training.fill(page, runs)
    drawn = sum([_add_study(page, folder, module) for folder, module in studies])
    if not runs and not drawn:
        return False
    experiments = list(dict.fromkeys(run.config["experiment"] for run in runs))
    counts = [count_of(len(runs), "run")] if runs else []
    counts += [count_of(drawn, "study", "studies")] if drawn else []
    page.title, page.subtitle = _title(experiments, drawn), ", ".join(counts)
    page.write(out, _footer(runs))
    return True


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m aimle.program.report.collection", description=__doc__
    )
    parser.add_argument("folders", type=Path, nargs="+", help="runs, studies, or folders of them")
    parser.add_argument("--out", type=Path, default=Path("report.html"))
    given = parser.parse_args()
    return attempt(lambda: draw(given.folders, given.out), "no report")


if __name__ == "__main__":
    exit_with(main)
