"""Draws runs and studies: ``python -m aimle.report.collection FOLDER… --out report.html``.

Training runs come first, an experiment after the other; then gradient studies and diagnoses, each
in a section of its own. Nothing is written into their folders.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

from aimle._program import EXPLAINED
from aimle.report import Page, training
from aimle.report.files import explain


def _modules() -> dict[str, ModuleType]:
    """What draws the folder of a study, by the file that it is known by."""
    from aimle.report import diagnose, synth  # these need matplotlib

    return {"study.json": synth, "diagnosis.json": diagnose}


def _find_runs(folders: Iterable[Path]) -> list[training.Run]:
    """Each once, also where a folder is given beside one that it lies in."""
    found = [run for folder in folders for run in training.find_runs(folder)]
    return list({run.folder.resolve(): run for run in found}.values())


def find_studies(folders: Iterable[Path]) -> list[tuple[Path, ModuleType]]:
    """Folders of studies and what draws them, each once.

    What is no study, or cannot be read, is named on standard error and left out.
    """
    studies: dict[Path, tuple[Path, ModuleType]] = {}
    for folder in folders:
        for name, module in _modules().items():
            for file in sorted(folder.rglob(name)):
                try:
                    module.headline(file.parent)
                except (OSError, ValueError, LookupError, TypeError) as error:
                    print(f"left out: {file} could not be read: {error!r}", file=sys.stderr)
                    continue
                studies.setdefault(file.resolve(), (file.parent, module))
    return list(studies.values())


def _title(experiments: Sequence[str], studies: int) -> str:
    parts = ["Training runs: " + ", ".join(experiments)] if experiments else []
    parts += ["gradient studies" if experiments else "Gradient studies"] if studies else []
    return "; ".join(parts)


def draw(folders: Sequence[Path], out: Path) -> None:
    """Writes the page; a ValueError if there is nothing to draw."""
    runs, studies = _find_runs(folders), find_studies(folders)
    if not runs and not studies:
        raise ValueError("no runs with metrics and no studies in " + ", ".join(map(str, folders)))
    experiments = list(dict.fromkeys(run.config["experiment"] for run in runs))
    counts = [f"{len(runs)} run(s)"] if runs else []
    counts += [f"{len(studies)} folder(s) of studies"] if studies else []
    page = Page(_title(experiments, len(studies)), ", ".join(counts), save_figures=False)
    training.fill(page, runs)
    for folder, module in studies:
        title, about = module.headline(folder)
        page.heading(f"{title} `{folder}`")
        page.paragraph(about)
        module.fill(page, folder)
    versions = {json.dumps(run.config.get("versions", {})) for run in runs}
    commits = {run.config.get("commit", "") for run in runs}
    page.write(out, f"{', '.join(sorted(versions))} {', '.join(sorted(commits))}".strip())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m aimle.report.collection", description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", help="runs, studies, or folders of them")
    parser.add_argument("--out", type=Path, default=Path("report.html"))
    given = parser.parse_args()
    if importlib.util.find_spec("matplotlib") is None:
        print("matplotlib is not installed: nothing can be drawn", file=sys.stderr)
        return 1
    try:
        draw(given.folders, given.out)
    except (OSError, ValueError, KeyError) as error:
        print(f"no report: {explain(error)}", file=sys.stderr)
        return EXPLAINED
    return 0


if __name__ == "__main__":
    sys.exit(main())
