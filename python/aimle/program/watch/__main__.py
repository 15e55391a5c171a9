"""``python -m aimle.program.watch FOLDER --port 8712``, which `aimle watch` runs."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from aimle.program.launch import EXPLAINED, exit_with
from aimle.program.watch.reader import RunsBelow
from aimle.program.watch.server import bind


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m aimle.program.watch", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args(arguments)
    try:
        server, why_not = bind(RunsBelow(given.folder), given.port)
    except OSError as error:
        print(f"aimle: cannot serve a page on this machine: {error.strerror}", file=sys.stderr)
        return EXPLAINED
    if why_not:
        print(f"port {given.port} cannot be used ({why_not}): chose {server.server_port} instead")
    print(f"watching {given.folder}: open {server.url} in a browser; Ctrl-C ends it", flush=True)
    with server:
        server.serve_forever()
    return 0


if __name__ == "__main__":
    exit_with(main)
