"""One process at a time writes into a folder."""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from aimle_program import PROGRAM, aimle, fails, metrics, names, need_program

TRAIN = [
    *("train", "dvae", "--examples", 80, "--test_examples", 20, "--validation", 20),
    *("--batch", 20, "--nb_samples", 2, "--rows", 4, "--threads", 1, "--epochs", 2),
]
SYNTH = ["synth", "samples", "--n", 5, "--seeds", 1, "--samples", 1, "--estimators", "ste"]
LOCK = ".aimle.lock"
IN_USE = "is in use by process 123456 on elsewhere"


@pytest.fixture(autouse=True)
def program_is_built() -> None:
    need_program()


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """The folder is locked, as if by another process."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w") as file:
        file.write("process 123456 on elsewhere\n")
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.mark.parametrize(
    "command",
    [
        TRAIN,
        [*TRAIN, "--resume"],
        [*TRAIN, "--force"],
        [*TRAIN, "--seeds", "0-1"],
        [*TRAIN, "--grid", "lr=1e-3,1e-4", "--resume"],
        SYNTH,
        [*SYNTH, "--force"],
        [*SYNTH, "--resume"],
        ["synth", "optimise", "--steps", 1],
        ["diagnose", "--n", 5, "--repeats", 2],
        ["data", "make", "--examples", 1, "--test_examples", 1],
        ["paper", "--quick", "--entries", "dvae-k10"],
    ],
    ids=lambda command: "-".join(map(str, [*command[:2], *command[-2:]])),
)
def test_a_folder_of_a_running_process_is_refused(command: list, tmp_path: Path) -> None:
    with held(tmp_path / "out"):
        fails(*command, "--out", tmp_path / "out", code=1, says=IN_USE)
        assert names(tmp_path / "out") == {LOCK}


def test_a_campaign_locks_the_folders_of_its_runs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    campaign = [*TRAIN, "--seeds", "0-1", "--out", out]
    with held(out / "seed-1"):
        fails(*campaign, "--force", code=1, says=f"seed-1 {IN_USE}")
        assert names(out) == {"seed-1"}
    done = aimle(*campaign, "--force")
    assert done.returncode == 0, done.stderr
    assert not list(out.rglob(LOCK))


def test_a_killed_process_leaves_the_folder_to_the_next(tmp_path: Path) -> None:
    out = tmp_path / "out"
    running = subprocess.Popen([PROGRAM, *map(str, TRAIN[:-1]), "100000", "--quiet", "--out", out])
    try:
        while not (out / "metrics.jsonl").exists():
            assert running.poll() is None
            time.sleep(0.01)
        for option in ("--force", "--resume"):
            fails(*TRAIN, option, "--out", out, code=1, says=f"in use by process {running.pid} on ")
    finally:
        running.kill()
        running.wait()
    assert (out / LOCK).exists()
    done = aimle(*TRAIN, "--force", "--out", out)
    assert done.returncode == 0, done.stderr
    assert len(metrics(out)) == 2
    assert LOCK not in names(out)


def test_a_folder_with_a_lock_left_behind_is_empty(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text("process 123456 on elsewhere\n")
    done = aimle(*SYNTH, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert names(tmp_path) == {"results.jsonl", "summary.csv", "study.json"}


@pytest.mark.parametrize("command", [SYNTH, TRAIN, [*TRAIN, "--seeds", "0-1"]])
def test_of_several_that_start_at_once_one_has_the_folder(command: list, tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    started = [
        subprocess.Popen(
            [PROGRAM, *map(str, command), "--quiet", "--out", out],
            env={**os.environ, "AIMLE_PYTHON": "/no/python"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    said = [process.communicate()[1] for process in started]
    assert sorted(process.returncode for process in started) == [0, 1, 1, 1], said
    refused = [text for text in said if "is in use by " in text or "is not empty" in text]
    assert len(refused) == 3, said
    assert not list(out.rglob(LOCK))
