"""Runs the program `aimle` of the build in tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aimle import _library

PROGRAM = _library.find().parent / "aimle"


def need_program() -> None:
    if not PROGRAM.is_file():
        pytest.skip("the program was not built (AIMLE_CLI)")


def without_figures(command: str = "") -> dict[str, str]:
    """The environment of a program that draws nothing, which takes seconds."""
    if command != "diagnose":
        return {**os.environ, "AIMLE_PYTHON": "/no/python"}
    path = os.pathsep.join(
        [str(Path(__file__).parent / "no_matplotlib"), os.environ.get("PYTHONPATH", "")]
    )
    return {**os.environ, "AIMLE_PYTHON": sys.executable, "PYTHONPATH": path}


def aimle(*arguments: object, figures: bool = False, **options) -> subprocess.CompletedProcess:
    """Without figures, unless asked."""
    drawing = {**os.environ, "AIMLE_PYTHON": sys.executable}
    environment = drawing if figures else without_figures(str(arguments[0]) if arguments else "")
    return subprocess.run(
        [str(PROGRAM), *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        **options,
    )


def fails(*arguments: object, code: int, says: str) -> None:
    """One line on standard error that starts with `aimle:`, this exit code, nothing printed."""
    result = aimle(*arguments)
    message = result.stderr.strip().splitlines()[-1]
    assert result.returncode == code, f"{arguments}: {result.returncode} {result.stderr}"
    assert message.startswith("aimle: "), result.stderr
    assert says in message, message
    assert result.stdout == ""


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


TIMES = {"seconds", "examples_per_second", "seconds_engine", "seconds_evaluate", "peak_memory_mib"}


def metrics(folder: Path) -> list[dict[str, Any]]:
    """What a training run wrote of its epochs, without times and memory."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k not in TIMES} for line in lines]
