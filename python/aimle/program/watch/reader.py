"""Reads the runs in a folder again and again, at little cost.

    runs = RunsBelow(Path("runs"))
    page = runs.changes_since(0)  # everything
    later = runs.changes_since(page["version"])  # what has changed since

The tree is searched for new runs now and then. In between only the files of known runs are looked
at, and those that have changed are read.
"""

import hashlib
import math
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from aimle.program.report.files import UnreadableError, read_png
from aimle.program.report.runs import Run, charts_of, group_runs, read_config
from aimle.program.watch.folder_lock import Owner, find_owner
from aimle.program.watch.watched_run import WatchedRun

_SEARCH_SECONDS = 3.0
_SEARCH_SHARE = 20  # searches take at most one of this many parts of the time


def _charts(runs: Iterable[WatchedRun]) -> dict[str, list[str]]:
    """The curves to draw of each experiment, in order."""
    names: dict[str, dict[str, None]] = {}
    for run in runs:
        names.setdefault(run.run.config["experiment"], {}).update(dict.fromkeys(run.curves))
    result = {}
    for experiment, known in names.items():
        charts = charts_of(known)
        result[experiment] = [*charts.losses, *charts.others, *charts.step_size]
    return result


class RunsBelow:
    """The runs in a folder and its subfolders. Not for several threads at once."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder = folder
        self._clock = clock
        self._runs: dict[Path, WatchedRun] = {}
        self._unreadable: list[UnreadableError] = []
        self._next_search = -math.inf
        self._described: dict[str, tuple[int, dict[str, Any]]] = {}  # with the version of a change
        self._listed: object = None
        self._version = 0

    def changes_since(self, version: int) -> dict[str, Any]:
        """What a page that shows this version needs to show the present one."""
        self._refresh()
        known = version if 0 <= version <= self._version else 0  # else of another process
        return {
            "version": self._version,
            "folder": str(self.folder),
            "order": list(self._described),
            "runs": [run for changed, run in self._described.values() if changed > known],
            "charts": _charts(self._runs.values()),
            "unreadable": [
                {"place": str(error.place), "wrong": error.wrong, "remedy": error.remedy}
                for error in self._unreadable
            ],
        }

    def picture(self, id: str, name: str) -> bytes | None:
        """A picture of a run, by the names in `changes_since`; None if there is none."""
        for run in self._runs.values():
            if run.id == id and name in run.pictures:
                try:
                    return read_png(run.run.folder / "pictures" / name)
                except (OSError, UnreadableError):
                    return None
        return None

    def _refresh(self) -> None:
        now = self._clock()
        if now >= self._next_search:
            self._search()
            end = self._clock()
            self._next_search = end + max(_SEARCH_SECONDS, _SEARCH_SHARE * (end - now))
        self._runs = {folder: run for folder, run in self._runs.items() if run.read()}
        self._find_owners()
        if not all(run.label for run in self._runs.values()):
            self._label()
        self._describe()

    def _search(self) -> None:
        """Finds new runs."""
        self._unreadable = []

        def add_closed(error: OSError) -> None:
            place = Path(error.filename)
            if place.exists():  # else it was deleted in this moment
                wrong = f"the folder cannot be read: {error.strerror}"
                self._unreadable.append(UnreadableError(place, wrong, "make it readable"))

        found = {}
        for place, below, files in os.walk(self.folder, onerror=add_closed):
            below[:] = sorted(name for name in below if not name.startswith("."))
            if "config.json" not in files:
                continue
            folder = Path(place)
            try:
                if run := self._runs.get(folder) or self._new(folder):
                    found[folder] = run
            except UnreadableError as error:
                if error.place.exists():
                    self._unreadable.append(error)
        self._runs = found

    def _new(self, folder: Path) -> WatchedRun | None:
        config = read_config(folder)
        if config is None:
            return None
        name = os.path.relpath(folder, self.folder)
        id = hashlib.blake2b(os.fsencode(name), digest_size=8).hexdigest()
        return WatchedRun(Run(folder, config, []), id, name)

    def _find_owners(self) -> None:
        """Which runs a process works on, and which a campaign still has to begin."""
        owners: dict[Path, Owner | None] = {}

        def owner_of(place: Path) -> Owner | None:
            if place not in owners:
                owners[place] = find_owner(place)
            return owners[place]

        for folder, run in self._runs.items():
            run.owner = owner_of(folder)
            # The folder of a campaign is one or two levels above: cell/seed-0.
            run.is_awaited = any(owner_of(place) for place in list(folder.parents)[:2])

    def _label(self) -> None:
        """The label of a run depends on the other runs of its experiment."""
        by_experiment: dict[str, list[Run]] = {}
        for run in self._runs.values():
            by_experiment.setdefault(run.run.config["experiment"], []).append(run.run)
        for runs in by_experiment.values():
            for group in group_runs(runs):
                for member in group.runs:
                    self._runs[member.folder].label = group.label or "run"

    def _describe(self) -> None:
        """Gives a new version to everything that has changed."""
        described: dict[str, tuple[int, dict[str, Any]]] = {}
        listed = ([*map(str, self._runs)], [*map(str, self._unreadable)])
        new = self._version + 1
        is_new = listed != self._listed
        for run in self._runs.values():
            now = run.described()
            before = self._described.get(run.id)
            if before is not None and before[1] == now:
                described[run.id] = before
            else:
                described[run.id] = (new, now)
                is_new = True
        self._described, self._listed = described, listed
        self._version = new if is_new else self._version
