"""The common part of the commands ``python -m aimle.program.report.<study> FOLDER``."""

import argparse
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from aimle.program.launch import EXPLAINED, exit_with
from aimle.program.report.files import explain


def run(module: str, about: str, draw: Callable[[Path], Path]) -> NoReturn:
    """Draws the folder of the command line and ends the process; prints errors in one line."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=about)
    parser.add_argument("folder", type=Path, help="the folder that the program wrote")
    folder = parser.parse_args().folder
    exit_with(lambda: attempt(lambda: draw(folder), str(folder)))


def attempt(draw: Callable[[], object], failure: str) -> int:
    """Draws; returns the exit code. Errors are printed in one line that begins with `failure`."""
    if importlib.util.find_spec("matplotlib") is None:
        print("matplotlib is not installed: nothing can be drawn", file=sys.stderr)
        return 1
    try:
        return 0 if draw() else EXPLAINED
    except (OSError, ValueError, KeyError) as error:
        print(f"{failure}: {explain(error)}", file=sys.stderr)
        return EXPLAINED
