"""What becomes of the runs of a campaign: waiting, running, done, failed. Prints what happens."""

import sys
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from aimle.program.campaign.cell import Cell, Result

#: How often a run is started: it continues from its checkpoint after its worker has died.
ATTEMPTS = 3

# Seconds between looks at which runs have begun.
_LOOK = 1.0


@dataclass
class Schedule:
    """The runs of a campaign in their order."""

    cells: list[Cell]
    quiet: bool = False
    stream: TextIO = field(default_factory=lambda: sys.stderr)

    def __post_init__(self) -> None:
        self.waiting = deque(range(len(self.cells)))
        self.done: list[int] = []
        self.failures: dict[int, str] = {}
        self._started = [0.0] * len(self.cells)
        self._attempts = [0] * len(self.cells)
        self._seen: set[int] = set()  # those that were said to run
        self._looked = 0.0

    @property
    def ended(self) -> int:
        return len(self.done) + len(self.failures)

    def take(self) -> int | None:
        """The next run to be started; None if there is none now."""
        if not self.waiting:
            return None
        index = self.waiting.popleft()
        self._started[index] = time.monotonic()
        self._attempts[index] += 1
        return index

    def end(self, index: int, result: Result) -> None:
        """A run has ended: takes note of it, or puts it in line again if its worker died."""
        label = self.cells[index].label
        self._seen.discard(index)
        if result.ended == "died" and self._attempts[index] < ATTEMPTS:
            self.waiting.append(index)
            self.say(f"{label}: its worker died ({result.message}); it continues on another")
            return
        if result.ended == "done":
            self.done.append(index)
            took = time.monotonic() - self._started[index]
            self.say(f"{label}: done after {took:.0f} s ({self.standing})")
            return
        message = result.message
        if result.ended == "died":
            message = f"its worker died {self._attempts[index]} times: {message}"
        self.failures[index] = message
        self.say(f"{label}: failed: {message} ({self.standing})")

    @property
    def standing(self) -> str:
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"{len(self.done)} of {len(self.cells)} done{failed}"

    def look(self, running: list[int]) -> None:
        """Says which of these runs have begun: the lock of a folder names process and machine."""
        if time.monotonic() - self._looked < _LOOK:
            return
        self._looked = time.monotonic()
        for index in running:
            if index in self._seen:
                continue
            try:
                lock = Path(self.cells[index].folder) / ".aimle.lock"
                owner = lock.read_text(errors="replace").strip()
            except OSError:
                continue
            self._seen.add(index)
            self.say(f"{self.cells[index].label}: running ({owner})")

    def say(self, line: str) -> None:
        """For the reader, unless quiet."""
        if not self.quiet:
            print(line, file=self.stream, flush=True)
