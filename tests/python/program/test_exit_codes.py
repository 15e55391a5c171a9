"""Exit codes of `python -m aimle...`: 2 for wrong usage, 130 after Ctrl-C, no 0 for a failure."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from aimle.program import launch
from aimle.program.campaign.cell import Cell, Result, run_cell


def start(module: str, *arguments: object) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", module, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )


def said(process: subprocess.Popen) -> str:
    return process.communicate(timeout=120)[1]


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("benchmark training --seeds a", "expected numbers and ranges"),
        ("benchmark training --suite small --tasks dvae-k1-s1", "the suite small has no task"),
        ("data fetch minst", "invalid choice: 'minst'"),
        ("report", "required: folders"),
    ],
)
def test_wrong_usage(command: str, says: str) -> None:
    module, *arguments = command.split()
    process = start(f"aimle.{module}", *arguments)
    assert says in said(process)
    assert process.returncode == 2


def test_ctrl_c(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        process = start("aimle.program.data", "fetch", "mnist", "--cache", tmp_path, "--from", url)
        connection, _ = silent.accept()
        with connection:
            process.send_signal(signal.SIGINT)
            assert said(process) == "aimle: stopped\n"
    assert process.returncode == 130


def test_a_command_without_the_program_passes_its_code_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop() -> int:
        raise KeyboardInterrupt

    for main, code in ((stop, 130), (lambda: 2, 2), (lambda: launch.EXPLAINED, 1), (lambda: 0, 0)):
        run = lambda *_, main=main, **__: launch.exit_with(main)  # noqa: E731
        monkeypatch.setattr("runpy.run_module", run)
        assert launch.run_without_program(["data", "list"]) == code


def test_rows_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "advice.csv").write_text("a,b\n1,2\n")
    process = start("aimle.program.benchmark", "advice", "--table", "--output", tmp_path)
    assert said(process).startswith(f"aimle benchmark: {tmp_path}/advice.csv: expected the columns")
    assert process.returncode == launch.EXPLAINED


def test_any_exit_code_of_a_run_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "config.json").touch()
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho aimle: no luck >&2\nexit 255\n")
    program.chmod(0o755)
    assert run_cell(Cell("a", str(tmp_path), str(program), [])) == Result("failed", "no luck")
