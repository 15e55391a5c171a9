"""`make demo`: one page at the end, and nothing overwritten."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from aimle_program import need_program
from html_page import check
from repository import ROOT


def demo(folder: Path, *options: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-m", "aimle.program.demo", "--steps", "2", "--seeds", "2", *options]
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )


def test_it_ends_with_one_page_and_overwrites_nothing(tmp_path: Path):
    pytest.importorskip("matplotlib")
    need_program()
    (tmp_path / "out/demo").mkdir(parents=True)
    (tmp_path / "out/demo/mine.txt").write_text("mine")
    result = demo(tmp_path)
    assert result.returncode == 0, result.stderr
    page = result.stdout.splitlines()[-1]
    assert page == "out/demo-2/report.html"
    html = (tmp_path / page).read_text()
    check(html)
    assert html.count("<svg") >= 2
    assert html.count("data:image/png;base64,") == 2
    assert {file.name for file in (tmp_path / "out/demo").iterdir()} == {"mine.txt"}
    refused = demo(tmp_path, "--out", "out/demo")
    assert refused.returncode == 2
    assert "is not empty" in refused.stderr
