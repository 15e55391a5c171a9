"""Progress of anything longer than two seconds: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import time
from typing import TextIO

_WIDTH = 28
_LINE_SECONDS = 5.0


class Progress:
    """`with Progress("learning", total=300) as bar: bar.step("loss 0.3")`."""

    def __init__(self, title: str, total: int, stream: TextIO | None = None) -> None:
        self.title, self.total = title, total
        self.stream = stream or sys.stderr
        self.live = self.stream.isatty()
        self.done, self.start = 0, time.monotonic()
        self.shown = 0.0 if self.live else self.start

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the bar's line."""
        if self.live and self.done:
            self.stream.write("\n")
            self.stream.flush()

    def step(self, note: str = "") -> None:
        """One unit of work is done."""
        self.done += 1
        now = time.monotonic()
        interval = 0.1 if self.live else _LINE_SECONDS
        if now - self.shown >= interval or self.done == self.total:
            self.shown = now
            self._show(note, now - self.start)

    def _show(self, note: str, elapsed: float) -> None:
        share = self.done / self.total
        left = elapsed / share - elapsed
        if self.live:
            filled = round(share * _WIDTH)
            bar = "█" * filled + "░" * (_WIDTH - filled)
            line = f"{self.title:24} {bar} {share:4.0%} {left:4.0f} s left  {note}"
            columns = os.get_terminal_size(self.stream.fileno()).columns or 80
            self.stream.write(f"\r{line[: columns - 1]}\033[K")
        else:
            self.stream.write(
                f"{self.title}: {self.done}/{self.total}, {left:.0f} s left, {note}\n"
            )
        self.stream.flush()
