"""Runs the program `aimle` that lies in the wheel, with this Python and its torch."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch


def main() -> None:
    package = Path(__file__).resolve().parent
    program = package / "bin" / "aimle"
    if not program.is_file():
        sys.exit(
            "aimle: the program is not part of this installation: it is built where CLI11, "
            "nlohmann-json and zlib are installed"
        )
    libraries = [str(Path(torch.__file__).parent / "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
    environment = {
        "AIMLE_PYTHON": sys.executable,
        **os.environ,
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, libraries)),
    }
    os.execve(program, ["aimle", *sys.argv[1:]], environment)
