"""Runs the program on a pseudo-terminal."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator

from aimle_program import PROGRAM, without_figures


class Terminal:
    """The program with a terminal as its standard error and, unless told, output."""

    def __init__(self, *arguments: object, columns: int, **options) -> None:
        self.inside, self._end = pty.openpty()
        self.resize(columns)
        given = without_figures(str(arguments[0]) if arguments else "")
        environment = {k: v for k, v in given.items() if k != "COLUMNS"} | {"TERM": "xterm"}
        self.process = subprocess.Popen(
            [str(PROGRAM), *map(str, arguments)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=options.get("stdout", self._end),
            stderr=self._end,
            start_new_session=True,
        )
        os.close(self._end)
        self.shown = ""

    def resize(self, columns: int) -> None:
        fcntl.ioctl(self.inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def read(self) -> bool:
        """Adds what is shown next; false at the end."""
        if not select.select([self.inside], [], [], 120)[0]:
            raise TimeoutError(self.shown[-1000:])
        try:
            new = os.read(self.inside, 65536)
        except OSError:  # the program has ended
            return False
        self.shown += new.decode(errors="replace")
        return bool(new)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 600
        while not condition():
            assert self.read(), self.shown[-1000:]
            assert time.monotonic() < deadline, self.shown[-1000:]

    def interrupt(self, *, paused: float = 0) -> float:
        """Seconds until the program has ended after Ctrl-C. `paused`: seconds during which it gets
        no processor time after that, as on a machine under load."""
        start = time.monotonic()
        os.killpg(self.process.pid, signal.SIGINT)
        if paused:
            time.sleep(0.3)  # the program notices the signal
            os.kill(self.process.pid, signal.SIGSTOP)
            time.sleep(paused)
            os.kill(self.process.pid, signal.SIGCONT)
        while self.read():
            pass
        self.process.wait(timeout=600)
        return time.monotonic() - start

    def last_line(self) -> str:
        return re.split(r"[\r\n]", self.shown.strip())[-1].removeprefix("\x1b[K")


@contextlib.contextmanager
def terminal(*arguments: object, columns: int = 80, **options) -> Iterator[Terminal]:
    opened = Terminal(*arguments, columns=columns, **options)
    try:
        yield opened
    finally:
        if opened.process.poll() is None:
            opened.process.kill()
            opened.process.wait()
        os.close(opened.inside)
