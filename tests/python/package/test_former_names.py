"""Modules of the program that moved into `aimle.program`, under their former names."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import aimle


@pytest.mark.parametrize("name", ["benchmark", "data", "demo", "report"])
def test_the_former_name_is_the_same_module(name: str):
    former = importlib.import_module(f"aimle.{name}")
    assert former is importlib.import_module(f"aimle.program.{name}")


@pytest.mark.parametrize("name", ["benchmark", "data", "demo", "report.collection"])
def test_the_former_name_can_be_run(name: str):
    if name == "report.collection":
        pytest.importorskip("matplotlib")
    done = subprocess.run(
        [sys.executable, "-m", f"aimle.{name}", "--help"],
        env=os.environ | {"PYTHONPATH": str(Path(aimle.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "usage:" in done.stdout
    assert done.stderr == ""
