"""Finds the program `aimle`, and runs it with this Python and its torch.

Where torchrun has started this process, the program runs inside of it (aimle.program.distributed).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch

from aimle import _library
from aimle.program import distributed

#: Exit code of a module called by the program that has already explained what is wrong with its
#: arguments or files (experiments/process/python.cpp): another Python would not help.
EXPLAINED = 3


def find() -> Path | None:
    """The program: in the wheel, or next to the library of a build; None if it was not built."""
    places = [
        Path(__file__).resolve().parents[1] / "bin" / "aimle",
        _library.find().parent / "aimle",
    ]
    return next((place for place in places if place.is_file()), None)


def environment() -> dict[str, str]:
    """Environment for the program: figures are drawn by this Python, and libtorch is its own."""
    libraries = [str(Path(torch.__file__).parent / "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
    return {
        "AIMLE_PYTHON": sys.executable,
        **os.environ,
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, libraries)),
    }


def main() -> None:
    if distributed.is_started_by_torchrun():
        sys.exit(distributed.run(sys.argv[1:]))
    program = find()
    if program is None:
        sys.exit(distributed.NOT_BUILT)
    os.execve(program, ["aimle", *sys.argv[1:]], environment())
