"""Writes the files of a run for `aimle watch` by hand, and serves them."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

from aimle.program.watch.reader import RunsBelow
from aimle.program.watch.server import Server, bind


def write_progress(folder: Path, state: str = "running", **values: object) -> None:
    content = {
        "state": state,
        "message": "",
        "epoch": 1,
        "epochs": 2,
        "step": 5,
        "steps": 10,
        "seconds_left": 60.0,
        "names": ["step", "loss", "alpha"],
        "points": [[2, 3.0, 0.5], [4, 2.0, 0.25], [15, 1.0, None]],
    }
    (folder / "progress.json").write_text(json.dumps(content | values))


def write_lock(folder: Path, process: int | None = None, machine: str = "") -> Path:
    """The file of the lock that a process holds, by default this one."""
    file = folder / ".aimle.lock"
    owner = os.getpid() if process is None else process
    file.write_text(f"process {owner} on {machine or socket.gethostname()}\n")
    return file


def png(width: int = 2, height: int = 2) -> bytes:
    """A grey picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = (b"\0" + b"\x80" * width) * height
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


@contextlib.contextmanager
def serving(folder: Path, port: int = 0) -> Iterator[Server]:
    server, _ = bind(RunsBelow(folder), port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
