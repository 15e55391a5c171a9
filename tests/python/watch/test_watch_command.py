"""`aimle watch`, the command."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from aimle_program import PROGRAM, fails, need_program
from written_runs import write_run


@pytest.fixture(autouse=True)
def _program() -> None:
    need_program()


def test_it_serves_until_it_is_stopped(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "aimle", 0, [1.0])
    process = subprocess.Popen(
        [str(PROGRAM), "watch", str(tmp_path), "--port", "0"],
        env={**os.environ, "AIMLE_PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"watching (.+): open (http://127\.0\.0\.1:\d+/) in a .*\n", line)
        assert found, line
        assert found[1] == str(tmp_path)
        with urllib.request.urlopen(found[2] + "runs.json", timeout=60) as answer:
            assert b'"name":"a"' in answer.read()
        os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does
        _, said = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == 130
    assert said == f"aimle: stopped watching {tmp_path}\n"


def test_misuse(tmp_path: Path) -> None:
    fails("watch", tmp_path / "none", code=1, says=f"there is no folder {tmp_path / 'none'}")
    fails(
        "watch", tmp_path, "--port", "70000", code=2, says="expected a whole number in [0, 65535]"
    )
    fails("watch", tmp_path, "--prot", "1", code=2, says="did you mean '--port'?")
