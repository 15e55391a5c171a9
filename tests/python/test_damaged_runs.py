"""Runs whose files were damaged: the result is right, or the program says what is wrong."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest
from program import aimle, metrics, need_program

TINY = [
    *("train", "dvae", "--examples", 80, "--test_examples", 20, "--validation", 20),
    *("--batch", 20, "--nb_samples", 2, "--rows", 4, "--epochs", 3, "--threads", 1),
    *("--checkpoint_steps", 1, "--quiet"),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_program()
    out = tmp_path_factory.mktemp("whole") / "run"
    done = aimle(*TINY, "--out", out)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "run")


def flip(file: Path, bit: int) -> None:
    content = bytearray(file.read_bytes())
    content[bit // 8 % len(content)] ^= 1 << bit % 8
    file.write_bytes(content)


def test_any_reader_of_zip_files_reads_a_checkpoint(whole: Path) -> None:
    for name in ("checkpoint.pt", "checkpoint.previous.pt", "best.pt"):
        with zipfile.ZipFile(whole / name) as archive:
            assert archive.testzip() is None
            assert archive.comment.startswith(b"aimle-xxh64:")


@pytest.mark.parametrize("bit", [3, 40_001, 1_000_003])
def test_a_damaged_checkpoint_is_replaced_by_the_previous_one(
    whole: Path, run: Path, bit: int
) -> None:
    flip(run / "checkpoint.pt", bit)
    done = aimle(*TINY, "--out", run, "--resume")
    assert done.returncode == 0, done.stderr
    assert f"{run / 'checkpoint.pt'} is damaged" in done.stderr
    assert f"continuing from {run / 'checkpoint.previous.pt'} at epoch 3, step 2" in done.stderr
    assert metrics(run) == metrics(whole)
    again = aimle(*TINY, "--out", run, "--resume")
    assert (again.returncode, again.stderr) == (0, "")


def test_without_an_intact_checkpoint_a_run_does_not_continue(run: Path) -> None:
    for name in ("checkpoint.pt", "checkpoint.previous.pt"):
        flip(run / name, 80_000)
    before = {file: file.read_bytes() for file in run.iterdir() if file.suffix == ".pt"}
    done = aimle(*TINY, "--out", run, "--resume")
    assert done.returncode == 1
    for text in (str(run / "checkpoint.pt"), "checkpoint.previous.pt is damaged", "--force"):
        assert text in done.stderr
    assert {file: file.read_bytes() for file in before} == before


def test_damaged_metrics_are_restored(whole: Path, run: Path) -> None:
    file = run / "metrics.jsonl"
    for text in (file.read_text()[:-40], file.read_text().replace("1", "2", 1), ""):
        file.write_text(text)
        done = aimle(*TINY, "--out", run, "--resume")
        assert done.returncode == 0, done.stderr
        assert f"{file} is damaged" in done.stderr
        assert metrics(run) == metrics(whole)


def test_a_run_does_not_continue_with_other_settings(run: Path) -> None:
    config = json.loads((run / "config.json").read_text())
    config["settings"]["lr"] = 0.003
    (run / "config.json").write_text(json.dumps(config))
    done = aimle(*TINY, "--out", run, "--resume")
    assert done.returncode == 1
    assert f"{run / 'config.json'}: lr is 0.003, but the checkpoint is of a run with" in done.stderr
