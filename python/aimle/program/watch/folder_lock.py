"""Finds out whether a process works in a folder, from the file of its lock.

The program holds a kernel lock on `.aimle.lock` and writes its process and machine into it
(experiments/process/folder_lock.h). Trying the lock could keep a run from starting, so the process
is looked up instead.
"""

import os
import re
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from aimle._files import is_alive

_OWNER = re.compile(r"process (\d+) on (.+)")
_SLACK = 2.0  # seconds: the start of a process and the time of a file are from different clocks


@dataclass(frozen=True)
class Owner:
    """A process that works in a folder."""

    process: int
    machine: str
    since: float  # when it locked the folder

    def is_here(self) -> bool:
        return self.machine == socket.gethostname()


@cache
def _start_of_the_machine() -> float | None:
    try:
        text = Path("/proc/stat").read_text()
    except OSError:
        return None
    found = re.search(r"^btime (\d+)$", text, re.MULTILINE)
    return float(found[1]) if found else None


def _start_of(process: int) -> float | None:
    """When it was started, in seconds since 1970; None if it does not exist or is not known."""
    boot = _start_of_the_machine()
    try:
        text = Path(f"/proc/{process}/stat").read_text(errors="replace")
    except OSError:
        return None
    # The name in parentheses is the second field, the start in clock ticks the 22nd.
    fields = text.rpartition(")")[2].split()
    return None if boot is None else boot + int(fields[19]) / os.sysconf("SC_CLK_TCK")


def find_owner(folder: Path) -> Owner | None:
    """The process that works in the folder; None if there is none.

    A file that a killed process left behind names a process that does not exist, or one that was
    started later. A process on another machine cannot be looked up, and counts.
    """
    file = folder / ".aimle.lock"
    try:
        since = file.stat().st_mtime
        found = _OWNER.match(file.read_text(errors="replace"))
    except OSError:
        return None
    if found is None:
        return None
    owner = Owner(int(found[1]), found[2].strip(), since)
    if not owner.is_here():
        return owner
    if not is_alive(owner.process):
        return None
    start = _start_of(owner.process)
    return None if start is not None and start > since + _SLACK else owner
