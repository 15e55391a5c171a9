"""The page of `aimle watch` in a browser; skipped where Chromium is not installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from watched_runs import png, serving, write_lock, write_progress
from written_runs import write_run

from aimle.program.watch.server import Server

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed: the page was not looked at in a browser"
)


def seen(server: Server, tmp_path: Path, width: int = 1280) -> str:
    """The document after the script has drawn it."""
    assert CHROMIUM is not None
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path / 'browser'}",
            f"--window-size={width},900",
            "--virtual-time-budget=2000",
            "--enable-logging=stderr",
            "--dump-dom",
            server.url,
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    errors = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert errors == []
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "runs"
    made.mkdir()
    return made


def test_no_runs(folder: Path, tmp_path: Path) -> None:
    with serving(folder) as server:
        page = seen(server, tmp_path)
    assert re.search(r'<section id="empty">', page)
    assert f"aimle train dvae --out {folder}/dvae" in page
    assert ">0 runs<" in page


def test_one_run_with_its_curves_and_pictures(folder: Path, tmp_path: Path) -> None:
    run = folder / "<b>bold"
    write_run(run, "aimle", 0, [3.0, 1.0])
    (run / "pictures").mkdir()
    (run / "pictures" / "samples.png").write_bytes(png())
    with serving(folder) as server:
        page = seen(server, tmp_path)
    assert "1 run · 1 finished" in page
    assert "&lt;b&gt;bold" in page
    assert "<b>bold" not in page
    charts = re.findall(r"<figcaption>(\w+)<small>", page)
    assert charts == ["train_loss", "val_loss", "test_loss", "alpha", "lambda"]
    assert len(re.findall(r'<path class="" d="M[\d. L]+"', page)) == len(charts)
    assert re.search(r'<img src="/pictures/[0-9a-f]+/samples.png\?\d+" alt="samples">', page)


def test_runs_of_every_state(folder: Path, tmp_path: Path) -> None:
    for seed, state in enumerate(("running", "interrupted", "failed")):
        write_run(folder / f"seed-{seed}", "aimle", seed, [3.0])
        config = folder / f"seed-{seed}" / "config.json"
        config.write_text(config.read_text().replace('"epochs": 1', '"epochs": 2'))
        if state == "running":
            write_lock(folder / f"seed-{seed}")
        write_progress(folder / f"seed-{seed}", state)
    write_run(folder / "seed-3", "aimle", 3, [3.0])
    with serving(folder) as server:
        page = seen(server, tmp_path, width=500)
    assert "4 runs · 1 running · 1 finished · 1 interrupted · 1 failed" in page
    states = re.findall(r'<td class="state \w+" title="[^"]*">(\w+)</td>', page)
    assert states == ["running", "interrupted", "failed", "finished"]
    assert re.search(r"\d+ (s|min) left", page)  # 60 s when it was written
    assert "<title>1 running · aimle watch</title>" in page
