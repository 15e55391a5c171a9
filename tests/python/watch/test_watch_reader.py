"""The reader of `aimle watch`: states, changes, damage."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from watched_runs import png, write_lock, write_progress
from written_runs import write_run

from aimle.program.watch.folder_lock import find_owner
from aimle.program.watch.reader import RunsBelow


class Clock:
    """Time that passes only when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def only(runs: RunsBelow) -> dict[str, Any]:
    (run,) = runs.changes_since(0)["runs"]
    return run


def longer(folder: Path, epochs: int) -> None:
    """The run is to have this many epochs."""
    config = json.loads((folder / "config.json").read_text())
    config["settings"]["epochs"] = epochs
    (folder / "config.json").write_text(json.dumps(config))


def test_a_folder_without_runs_and_one_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text('{"name": "of another program"}')
    for folder in (tmp_path, tmp_path / "none"):
        answer = RunsBelow(folder).changes_since(0)
        assert (answer["runs"], answer["order"], answer["unreadable"]) == ([], [], [])


def test_a_finished_run_has_its_curves_and_its_best_epoch(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "aimle", 0, [3.0, 1.0, 2.0])
    runs = RunsBelow(tmp_path)
    run = only(runs)
    assert (run["name"], run["experiment"], run["state"]) == ("a", "dvae", "finished")
    assert (run["metric"], run["best"], run["best_epoch"]) == ("val_loss", 1.0, 2)
    assert run["curves"]["epoch"] == [1, 2, 3]
    assert run["curves"]["val_loss"] == [3.0, 1.0, 2.0]
    charts = runs.changes_since(0)["charts"]["dvae"]
    assert charts == ["train_loss", "val_loss", "test_loss", "alpha", "lambda", "count"]


def test_a_long_run_has_some_of_its_epochs_and_the_last(tmp_path: Path) -> None:
    write_run(tmp_path, "aimle", 0, [float(i) for i in range(1001)])
    epochs = only(RunsBelow(tmp_path))["curves"]["epoch"]
    assert len(epochs) < 402
    assert (epochs[0], epochs[-1]) == (1, 1001)


def test_numbers_that_are_not_finite_are_null(tmp_path: Path) -> None:
    write_run(tmp_path, "aimle", 0, [float("nan"), float("inf"), 1.0])
    run = only(RunsBelow(tmp_path))
    assert run["curves"]["val_loss"] == [None, None, 1.0]
    json.dumps(run, allow_nan=False)


@pytest.mark.parametrize(
    ("state", "message", "owned", "shown"),
    [
        ("running", "", True, "running"),
        ("running", "", False, "interrupted"),  # killed
        ("interrupted", "stopped at epoch 2", False, "interrupted"),
        ("failed", "the loss is not finite", False, "failed"),
        ("failed", "the loss is not finite", True, "failed"),  # others of its campaign go on
    ],
)
def test_the_state_of_a_run(
    tmp_path: Path, state: str, message: str, owned: bool, shown: str
) -> None:
    write_run(tmp_path, "aimle", 0, [1.0])
    longer(tmp_path, 2)
    write_lock(tmp_path, None if owned else ended_process())
    write_progress(tmp_path, state, message=message)
    run = only(RunsBelow(tmp_path))
    assert run["state"] == shown
    assert message in run["message"]
    if state == "running" and not owned:
        assert "--resume" in run["message"]
    assert run["seconds_left"] == (60.0 if shown == "running" else None)
    assert run["step"] == (5 if shown == "running" else 0)
    assert run["live"]["points"][-1] == (15, 1.0, None)


def test_a_run_that_its_campaign_has_not_begun_is_waiting(tmp_path: Path) -> None:
    run = tmp_path / "lambda=1" / "seed-0"
    write_run(run, "aimle", 0, [])
    longer(run, 2)
    write_lock(tmp_path)
    assert only(RunsBelow(tmp_path))["state"] == "waiting"
    # The progress of a process that was killed before the campaign was resumed.
    write_progress(run)
    os.utime(run / "progress.json", (1, 1))
    write_lock(run)
    assert only(RunsBelow(tmp_path))["state"] == "waiting"
    write_progress(run)
    assert only(RunsBelow(tmp_path))["state"] == "running"


def test_a_process_is_recognised(tmp_path: Path) -> None:
    assert find_owner(tmp_path) is None
    lock = write_lock(tmp_path)
    owner = find_owner(tmp_path)
    assert owner is not None
    assert owner.process == os.getpid()
    os.utime(lock, (1, 1))  # long before this process was started: its number was used again
    assert find_owner(tmp_path) is None
    write_lock(tmp_path, ended_process())
    assert find_owner(tmp_path) is None
    write_lock(tmp_path, 1, "another-machine")
    assert find_owner(tmp_path) is not None
    lock.write_text("")
    assert find_owner(tmp_path) is None


def test_the_name_of_a_process_need_not_be_text(tmp_path: Path) -> None:
    named = (
        "import ctypes; ctypes.CDLL(None).prctl(15, b'caf\\xe9', 0, 0, 0); "
        "print(flush=True); input()"
    )
    command = [sys.executable, "-c", named]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        write_lock(tmp_path, process.pid)
        owner = find_owner(tmp_path)
        process.communicate(b"\n")
    assert owner is not None
    assert owner.process == process.pid


def test_a_silent_machine_is_named(tmp_path: Path) -> None:
    write_run(tmp_path, "aimle", 0, [1.0])
    longer(tmp_path, 2)
    write_progress(tmp_path)
    os.utime(tmp_path / "progress.json", (1000, 1000))
    lock = write_lock(tmp_path, 1, "far-away")
    os.utime(lock, (999, 999))
    run = only(RunsBelow(tmp_path))
    assert run["state"] == "running"
    assert "far-away has written nothing for" in run["message"]


def test_only_what_has_changed_is_sent_and_read(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(3):
        write_run(tmp_path / f"seed-{seed}", "aimle", seed, [2.0])
    runs = RunsBelow(tmp_path, clock)
    first = runs.changes_since(0)
    assert len(first["runs"]) == 3
    read: list[str] = []
    real = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda p, **o: read.append(p.name) or real(p, **o))
    again = runs.changes_since(first["version"])
    assert (again["runs"], again["version"], read) == ([], first["version"], [])

    with (tmp_path / "seed-1" / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 2, "val_loss": 1.0}\n')
    later = runs.changes_since(first["version"])
    assert [run["name"] for run in later["runs"]] == ["seed-1"]
    assert read == ["metrics.jsonl"]
    assert later["order"] == first["order"]
    assert runs.changes_since(later["version"])["runs"] == []
    assert len(runs.changes_since(10**9)["runs"]) == 3  # a version of another process


def test_runs_come_and_go(tmp_path: Path, clock: Clock) -> None:
    write_run(tmp_path / "a", "aimle", 0, [2.0])
    runs = RunsBelow(tmp_path, clock)
    first = runs.changes_since(0)
    write_run(tmp_path / "b", "imle", 0, [2.0])
    assert runs.changes_since(first["version"])["version"] == first["version"]
    clock.now += 1000  # the folders are searched again
    later = runs.changes_since(first["version"])
    assert [run["name"] for run in later["runs"] if run["name"] == "b"] == ["b"]
    assert len(later["order"]) == 2
    shutil.rmtree(tmp_path / "a")
    gone = runs.changes_since(later["version"])
    assert gone["order"] == later["order"][1:]
    assert gone["version"] > later["version"]


def test_a_half_written_file_keeps_what_was_read(tmp_path: Path) -> None:
    write_run(tmp_path, "aimle", 0, [2.0, 1.0])
    write_progress(tmp_path)
    runs = RunsBelow(tmp_path)
    assert only(runs)["notes"] == []
    for name in ("metrics.jsonl", "progress.json", "config.json"):
        file = tmp_path / name
        whole = file.read_text()
        file.write_text(whole[:-9])
        run = only(runs)
        assert run["curves"]["val_loss"] == [2.0, 1.0]
        assert len(run["live"]["points"]) == 3
        (note,) = run["notes"]
        assert note.startswith(f"{name}: it is cut off or damaged")
        file.write_text(whole)
        assert only(runs)["notes"] == []


@pytest.mark.parametrize("progress", ["[]", '{"state": 1}', "null", '{"points": 3, "names": 1}'])
def test_a_progress_of_another_kind_is_noted(tmp_path: Path, progress: str) -> None:
    write_run(tmp_path, "aimle", 0, [2.0])
    (tmp_path / "progress.json").write_text(progress)
    run = only(RunsBelow(tmp_path))
    assert run["state"] == "finished"
    assert "progress.json: it is damaged" in run["notes"][0]


def test_a_run_whose_settings_cannot_be_read_is_named(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "aimle", 0, [2.0])
    (tmp_path / "a" / "config.json").write_text('{"experi')
    answer = RunsBelow(tmp_path).changes_since(0)
    assert answer["runs"] == []
    (error,) = answer["unreadable"]
    assert error["place"].endswith("a/config.json")


def test_pictures_are_found_by_their_listed_names_only(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "aimle", 0, [2.0])
    pictures = tmp_path / "a" / "pictures"
    pictures.mkdir()
    (pictures / "samples.png").write_bytes(png())
    (pictures / "half.png").write_bytes(png()[:-5])
    (pictures / "secret.png").symlink_to(tmp_path / "a" / "config.json")
    runs = RunsBelow(tmp_path)
    run = only(runs)
    assert set(run["pictures"]) == {"samples.png", "half.png", "secret.png"}
    assert runs.picture(run["id"], "samples.png") == png()
    names = ["half.png", "secret.png", "../config.json", "../pictures/samples.png", "", "none.png"]
    assert [runs.picture(run["id"], name) for name in names] == [None] * len(names)
    assert runs.picture("0", "samples.png") is None
