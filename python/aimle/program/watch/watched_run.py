"""A run that is watched: its files, read again when they change, and its state."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aimle.program.report.files import UnreadableError, naming_damage, read_json
from aimle.program.report.runs import Run, read_config, read_metrics
from aimle.program.watch.folder_lock import Owner

_MOST_POINTS = 400  # of a curve over epochs
_SILENT_SECONDS = 600.0

Stamp = tuple[int, int, int]


def _stamp(file: Path) -> Stamp | None:
    """Changes when the file does; None if there is none."""
    try:
        about = file.stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size, about.st_ino


def _number(value: object) -> float | None:
    """With seven digits, to keep the answers short; None for anything else than a number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value if isinstance(value, int) else float(f"{value:.7g}")


def _columns(lines: Sequence[dict[str, Any]]) -> dict[str, list[float | None]]:
    """The values of each metric, null where there is none; of long runs only some epochs."""
    every = max(1, math.ceil(len(lines) / _MOST_POINTS))
    chosen = [*lines[:-1:every], *lines[-1:]]
    names = dict.fromkeys(name for line in chosen for name in line)
    return {name: [_number(line.get(name)) for line in chosen] for name in names}


@dataclass(frozen=True)
class Progress:
    """progress.json (experiments/engine/live_progress.h)."""

    state: str = ""
    message: str = ""
    epoch: int = 0
    step: int = 0
    steps: int = 0
    seconds_left: float | None = None
    names: tuple[str, ...] = ()
    points: tuple[tuple[float | None, ...], ...] = ()
    written: float = 0.0

    @classmethod
    def read(cls, file: Path) -> Progress:
        written = file.stat().st_mtime
        content = read_json(file)
        names = tuple(map(str, content["names"]))
        points = tuple(tuple(_number(value) for value in line) for line in content["points"])
        if any(len(point) != len(names) for point in points):
            raise ValueError("expected as many values as names")
        return cls(
            state=str(content["state"]),
            message=str(content["message"]),
            epoch=int(content["epoch"]),
            step=int(content["step"]),
            steps=int(content["steps"]),
            seconds_left=_number(content["seconds_left"]),
            names=names,
            points=points,
            written=written,
        )


@dataclass
class WatchedRun:
    """A run, as it was when its files were last looked at."""

    run: Run
    id: str
    name: str  # its folder, relative to the one that is watched
    label: str = ""  # of all runs with these settings; empty: to be found anew
    progress: Progress = field(default_factory=Progress)
    curves: dict[str, list[float | None]] = field(default_factory=dict)  # over epochs
    pictures: dict[str, int] = field(default_factory=dict)  # names of files, and their versions
    owner: Owner | None = None
    is_awaited: bool = False  # a campaign works in a folder above
    notes: dict[str, str] = field(default_factory=dict)  # what could not be read, by file
    stamps: dict[str, Stamp | None] = field(default_factory=dict)

    def read(self) -> bool:
        """Reads what has changed; False if the run is gone."""
        if _stamp(self.run.folder / "config.json") is None:
            return False
        self._update("config.json", self._read_config)
        self._update("metrics.jsonl", self._read_metrics)
        self._update("progress.json", self._read_progress)
        self._update("pictures", self._list_pictures)
        return True

    def _update(self, name: str, read: Callable[[], None]) -> None:
        """A file that cannot be read leaves what was read before, and a note."""
        file = self.run.folder / name
        stamp = _stamp(file)
        if stamp == self.stamps.get(name):
            return
        self.stamps[name] = stamp
        self.notes.pop(name, None)
        try:
            with naming_damage(file):
                read()
        except UnreadableError as error:
            self.notes[name] = f"{error.place.name}: {error.wrong}"

    def _read_config(self) -> None:
        config = read_config(self.run.folder)
        if config is None:
            raise UnreadableError(self.run.folder / "config.json", "it is no longer that of a run")
        if config != self.run.config:
            self.run.config, self.label = config, ""

    def _read_metrics(self) -> None:
        self.run.metrics = read_metrics(self.run.folder)
        self.curves = _columns(self.run.metrics)

    def _read_progress(self) -> None:
        file = self.run.folder / "progress.json"
        self.progress = Progress.read(file) if file.exists() else Progress()

    def _list_pictures(self) -> None:
        found = sorted((self.run.folder / "pictures").glob("*.png"))
        self.pictures = {file.name: file.stat().st_mtime_ns // 1000 for file in found}

    @property
    def epochs(self) -> int:
        wanted = self.run.config["settings"].get("epochs")
        return wanted if type(wanted) is int else 0

    @property
    def epochs_done(self) -> int:
        return self.run.metrics[-1]["epoch"] if self.run.metrics else 0

    def state(self) -> tuple[str, str]:
        """waiting, running, finished, interrupted or failed; and what there is to say about it."""
        progress, owner = self.progress, self.owner
        is_done = 0 < self.epochs <= self.epochs_done
        if owner is None:
            if is_done:
                return "finished", ""
            if progress.state == "failed":
                return "failed", progress.message
            if self.is_awaited:
                return "waiting", ""
            if progress.state == "interrupted":
                return "interrupted", progress.message
            return "interrupted", "its process has ended; continue it with --resume"
        is_of_owner = progress.written >= owner.since
        if is_of_owner and progress.state in ("failed", "interrupted"):
            return progress.state, progress.message  # the process goes on with other runs
        if is_done:
            return "finished", ""
        if is_of_owner or (not progress.state and self.run.metrics):  # of an older program
            return "running", self._silence(owner)
        return "waiting", ""

    def _silence(self, owner: Owner) -> str:
        silent = time.time() - self.progress.written
        if owner.is_here() or not self.progress.state or silent < _SILENT_SECONDS:
            return ""
        return f"{owner.machine} has written nothing for {silent / 60:.0f} min"

    def described(self) -> dict[str, Any]:
        """What the page shows of it."""
        config, progress = self.run.config, self.progress
        state, message = self.state()
        is_running = state == "running"
        epoch = max(self.epochs_done, progress.epoch if is_running else 0)
        best = self.run.best() if self.run.metrics else {}
        metric = config.get("select", "val_loss")
        metric = metric if metric in best else "train_loss"
        return {
            "id": self.id,
            "name": self.name,
            "label": self.label,
            "experiment": config["experiment"],
            "settings": config["settings"],
            "command": config.get("command", ""),
            "created": config.get("created", ""),
            "state": state,
            "message": message,
            "notes": list(self.notes.values()),
            "epoch": epoch,
            "epochs": self.epochs,
            "step": progress.step if is_running and progress.epoch == epoch else 0,
            "steps": progress.steps,
            "seconds_left": progress.seconds_left if is_running else None,
            "written": progress.written,
            "metric": metric,
            "best": _number(best.get(metric)),
            "best_epoch": best.get("epoch"),
            "curves": self.curves,
            "live": {"names": progress.names, "points": progress.points},
            "pictures": self.pictures,
        }
