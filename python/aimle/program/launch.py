"""Finds the program `aimle`, and runs it with this Python and its torch.

Where torchrun has started this process, the program runs inside of it (aimle.program.distributed).
A wheel has the program only if it was built with it. Without it, those commands work that the
Python package contains completely; the others say how to add it.
"""

import importlib
import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import torch

from aimle import _library
from aimle.program import distributed

#: Exit code of a module called by the program that has already explained what is wrong with its
#: arguments or files (experiments/process/python.cpp): another Python would not help.
EXPLAINED = 3

#: The commands that need no program: the modules that do their work, which take all words after the
#: first.
IN_PYTHON = {
    ("report",): "aimle.program.report.collection",
    ("benchmark",): "aimle.program.benchmark",
    ("data", "list"): "aimle.program.data",
    ("data", "fetch"): "aimle.program.data",
}

_NO_PROGRAM = """\
aimle: this installation has the library, but not the program `aimle`. To add it, run in the folder
of aimle's source

    {command}

It needs CLI11, nlohmann-json and zlib (Debian, Ubuntu: apt-get install libcli11-dev
nlohmann-json3-dev zlib1g-dev). These commands work without it:

    {commands}"""


def exit_with(main: Callable[[], int]) -> NoReturn:
    """Ends the process with the exit code of `main`, or with 130 after Ctrl-C."""
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("aimle: stopped", file=sys.stderr)
        sys.exit(130)


def stand_for(name: str, module: str, runs: str = "") -> None:
    """Makes `name` another name of the module; `python -m` with it runs the module, or `runs`."""
    if name == "__main__":
        runpy.run_module(runs or module, run_name="__main__", alter_sys=True)
    else:
        sys.modules[name] = importlib.import_module(module)


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


def what_is_missing() -> str:
    """Says that there is no program, and how to add it to a wheel or to a build."""
    is_wheel = _library.find().parent == Path(__file__).resolve().parents[1] / "lib"
    add_to_wheel = "pip install --no-build-isolation -C cmake.define.AIMLE_CLI=ON ."
    return _NO_PROGRAM.format(
        command=add_to_wheel if is_wheel else "make build",
        commands="\n    ".join(f"aimle {' '.join(words)}" for words in IN_PYTHON),
    )


def run_without_program(arguments: list[str]) -> int | str:
    """Runs a command that the Python package contains: its exit code, or what is missing."""
    words = next((words for words in IN_PYTHON if arguments[: len(words)] == list(words)), None)
    if words is None:
        return what_is_missing()
    sys.argv[1:] = arguments[1:]
    try:
        runpy.run_module(IN_PYTHON[words], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return 1 if end.code == EXPLAINED else end.code or 0
    return 0


def main() -> None:
    arguments = sys.argv[1:]
    if distributed.is_started_by_torchrun():
        library = distributed.find()
        sys.exit(distributed.run(library, arguments) if library else what_is_missing())
    program = find()
    if program is None:
        sys.exit(run_without_program(arguments))
    os.execve(program, ["aimle", *arguments], environment())
