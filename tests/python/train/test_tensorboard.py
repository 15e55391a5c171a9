"""`aimle train --tensorboard`: every step is logged once, even if the run was killed."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from aimle_program import TIMES, aimle, need_program
from event_files import read_events
from extras import need

# 20 steps an epoch.
RUN = ("train", "dvae", "--examples", 400, "--test_examples", 20, "--validation", 0, "--batch", 20,
       "--nb_samples", 2, "--rows", 4, "--threads", 1, "--quiet",
       "--checkpoint_steps", 6)  # fmt: skip
NAME = "events.out.tfevents.aimle"


@pytest.fixture(autouse=True, scope="module")
def _program() -> None:
    need_program()


def train(out: Path, *options: object, code: int = 0, **environment: str) -> None:
    given = [*RUN, "--resume", "--out", out, *options]
    if "--epochs" not in options:
        given += ["--epochs", 2]
    for name, value in environment.items():
        os.environ[name] = value
    try:
        done = aimle(*given)
    finally:
        for name in environment:
            del os.environ[name]
    assert done.returncode == code, done.stderr


def events(out: Path) -> list[tuple[int, dict[str, float]]]:
    """Without times."""
    free = {f"epoch/{name}" for name in TIMES}
    found = read_events(out / NAME)
    return [(step, {k: v for k, v in values.items() if k not in free}) for step, values in found]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "run"
    train(out, "--tensorboard")
    return out


def lines(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def test_steps_and_epochs_are_there_once_and_in_order(whole: Path) -> None:
    found = events(whole)
    steps = [step for step, values in found if "step/loss" in values]
    assert steps == list(range(1, 41))  # fewer than 50 an epoch: every one
    epochs = [(step, values) for step, values in found if "step/loss" not in values]
    assert [step for step, _ in epochs] == [20, 40]
    assert [step for step, _ in found] == sorted(step for step, _ in found)
    for (_, values), line in zip(epochs, lines(whole), strict=True):
        for name, value in values.items():
            assert math.isclose(value, line[name.removeprefix("epoch/")], rel_tol=1e-6)
    losses = [values["step/loss"] for _, values in found if "step/loss" in values]
    assert math.isclose(sum(losses[:20]) / 20, lines(whole)[0]["train_loss"], rel_tol=1e-5)
    assert {"step/alpha", "step/lambda"} <= found[0][1].keys()


@pytest.mark.parametrize("step", [3, 16, 20, 33])
def test_a_killed_run_has_the_events_of_a_whole_one(whole: Path, tmp_path: Path, step: int) -> None:
    train(tmp_path, "--tensorboard", code=-9, AIMLE_TEST_KILL_AT_STEP=f"0:{step}")
    assert events(tmp_path) != events(whole)
    with (tmp_path / NAME).open("ab") as file:
        file.write(b"half a record")
    train(tmp_path)
    assert events(tmp_path) == events(whole)


def test_it_is_killed_between_the_files_of_an_epoch(whole: Path, tmp_path: Path) -> None:
    moment = 1
    while True:  # every second one: before and after each file is in place
        out = tmp_path / str(moment)
        given = [*RUN, "--resume", "--out", out, "--epochs", 2, "--tensorboard"]
        os.environ["AIMLE_TEST_KILL_AT_WRITE"] = str(moment)
        try:
            done = aimle(*given)
        finally:
            del os.environ["AIMLE_TEST_KILL_AT_WRITE"]
        if done.returncode == 0:
            break
        train(out, "--tensorboard")
        assert events(out) == events(whole), moment
        moment += 5
    assert moment > 20


def test_it_can_be_added_to_a_run(whole: Path, tmp_path: Path) -> None:
    train(tmp_path, "--epochs", 1)
    assert not (tmp_path / NAME).exists()
    train(tmp_path, "--tensorboard")
    expected = [event for event in events(whole) if event[0] >= 20 and event[0] != 20]
    epoch = [e for e in events(whole) if e[0] == 20 and "step/loss" not in e[1]]
    assert events(tmp_path) == [*epoch, *expected]


def test_starting_again_begins_a_new_file(whole: Path, tmp_path: Path) -> None:
    train(tmp_path, "--tensorboard", "--epochs", 1)
    done = aimle(*RUN, "--force", "--out", tmp_path, "--epochs", 2, "--tensorboard")
    assert done.returncode == 0, done.stderr
    assert events(tmp_path) == events(whole)


def test_tensorboard_reads_it(whole: Path) -> None:
    accumulator = need("tensorboard.backend.event_processing.event_accumulator")
    reader = accumulator.EventAccumulator(str(whole))
    reader.Reload()
    found = events(whole)
    for tag in ("step/loss", "step/alpha", "epoch/train_loss", "epoch/test_loss"):
        expected = [(step, values[tag]) for step, values in found if tag in values]
        assert [(event.step, event.value) for event in reader.Scalars(tag)] == expected
