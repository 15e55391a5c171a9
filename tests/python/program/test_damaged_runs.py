"""Damaged files of runs: the result is correct, or the program reports the damage."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest
from aimle_program import aimle, metrics, names, need_program

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


@pytest.mark.parametrize("option", ["--resume", "--force"])
def test_temporaries_of_killed_processes_are_removed(tmp_path: Path, option: str) -> None:
    need_program()
    campaign = [*TINY, "--seeds", "0-1", "--out", tmp_path]
    left = [tmp_path / "summary.json.tmp3", tmp_path / "seed-1" / "checkpoint.pt.tmp18079"]
    left += [tmp_path / "seed-0" / "pictures" / "samples.png.tmp1"]
    mine = tmp_path / "seed-0" / "notes.tmp1"
    for file in (*left, mine):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    done = aimle(*campaign, option)
    assert done.returncode == 0, done.stderr
    assert not any(file.exists() for file in left)
    assert mine.exists()


def test_a_study_removes_temporaries(tmp_path: Path) -> None:
    need_program()
    (tmp_path / "results.jsonl.tmp12").touch()
    study = ["synth", "samples", "--n", 5, "--seeds", 1, "--samples", 1, "--estimators", "ste"]
    assert aimle(*study, "--out", tmp_path).returncode == 1  # not empty: nothing is touched
    assert (tmp_path / "results.jsonl.tmp12").exists()
    assert aimle(*study, "--out", tmp_path, "--resume").returncode == 0
    assert names(tmp_path) == {"results.jsonl", "summary.csv", "study.json"}


def test_the_summary_of_finished_runs_is_that_of_runs_just_trained(tmp_path: Path) -> None:
    """ste has no lambda: its metric is null in the file, and must not be a NaN before that."""
    need_program()
    campaign = [*TINY, "--method", "ste", "--seeds", "0-1", "--out", tmp_path]
    assert aimle(*campaign).returncode == 0
    summary = (tmp_path / "summary.json").read_text()
    assert aimle(*campaign, "--resume").returncode == 0
    assert (tmp_path / "summary.json").read_text() == summary


def test_a_study_does_not_continue_with_damaged_results(tmp_path: Path) -> None:
    need_program()
    study = ["synth", "samples", "--n", 5, "--seeds", 2, "--samples", 1, "--estimators", "ste,imle"]
    assert aimle(*study, "--out", tmp_path).returncode == 0
    file = tmp_path / "results.jsonl"
    whole = file.read_text()
    cosine = whole.index('"cosine":') + 12
    for text in (
        whole[:cosine] + str((int(whole[cosine]) + 1) % 10) + whole[cosine + 1 :],
        whole[: whole.index("\n") + 1],
        "",
    ):
        file.write_text(text)
        done = aimle(*study, "--out", tmp_path, "--resume")
        assert done.returncode == 1
        assert f"{file} is damaged" in done.stderr
        assert "--force" in done.stderr
    assert aimle(*study, "--out", tmp_path, "--force").returncode == 0
    assert file.read_text() == whole


def test_a_study_stopped_before_its_first_result_continues(tmp_path: Path) -> None:
    need_program()
    study = ["synth", "samples", "--n", 5, "--seeds", 1, "--samples", 1, "--estimators", "ste"]
    assert aimle(*study, "--out", tmp_path).returncode == 0
    whole = (tmp_path / "results.jsonl").read_text()
    about = json.loads((tmp_path / "study.json").read_text())
    about |= {"complete": False, "results_xxh64": ["ef46db3751d8e999"]}  # of nothing
    (tmp_path / "study.json").write_text(json.dumps(about))
    (tmp_path / "results.jsonl").write_text("")
    assert aimle(*study, "--out", tmp_path, "--resume").returncode == 0
    assert (tmp_path / "results.jsonl").read_text() == whole
