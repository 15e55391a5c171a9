"""`aimle train --workers` and `aimle paper --workers`: the same numbers as in one process.

GPUs are stood in for by names: a run on the CPU takes no notice of CUDA_VISIBLE_DEVICES.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from aimle_program import PROGRAM, TIMES, aimle, metrics, need_program

from aimle.program.campaign.__main__ import cells_of, conduct
from aimle.program.campaign.cell import Cell, Result, Stopped, run_cell
from aimle.program.campaign.gpu_pool import gpus_of, run_on_gpus
from aimle.program.campaign.schedule import ATTEMPTS, Schedule

SMALL = [
    *("--examples", "200", "--test_examples", "40", "--validation", "40", "--batch", "20"),
    *("--nb_samples", "2", "--rows", "4"),
]
CAMPAIGN = [
    *("train", "dvae", *SMALL, "--epochs", "2", "--method", "imle"),
    *("--grid", "lambda=1,10", "--seeds", "0-1"),
]
FOLDERS = [f"lambda={value}/seed-{seed}" for value in (1, 10) for seed in (0, 1)]


@pytest.fixture(autouse=True)
def program_is_built() -> None:
    need_program()


@pytest.fixture(scope="module")
def in_one_process(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the campaign as it is without workers."""
    need_program()
    out = tmp_path_factory.mktemp("campaign") / "one"
    done = aimle(*CAMPAIGN, "--out", out)
    assert done.returncode == 0, done.stderr
    return out


def script(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def prepare(tmp_path: Path, *arguments: object) -> dict[str, Any]:
    """The request that the program makes of the Python package for this command.

    It is stopped then, as by `kill`, and leaves the folders that it has prepared.
    """
    asked = tmp_path / "request.json"
    python = script(tmp_path / "python", f"cat > {asked}", "kill -TERM $PPID", "exit 1")
    done = subprocess.run(
        [str(PROGRAM), *map(str, arguments)],
        env={**os.environ, "AIMLE_PYTHON": str(python)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 143, done.stderr
    return json.loads(asked.read_text())


def run_all(request: dict[str, Any], out: Path, gpus: list[str], at_once: int = 0) -> Schedule:
    schedule = Schedule(cells_of(request, str(PROGRAM), out), quiet=True)
    run_on_gpus(schedule, gpus, at_once, lambda: False)
    return schedule


def assert_same(out: Path, expected: Path) -> None:
    """Metrics, models and the summary, all but times."""
    for name in FOLDERS:
        assert metrics(out / name) == metrics(expected / name), name
        a, b = (torch.load(each / name / "best.pt", weights_only=True) for each in (out, expected))
        assert a["epoch"] == b["epoch"]
        assert all(torch.equal(a["model"][key], b["model"][key]) for key in b["model"])
        config, other = (
            json.loads((each / name / "config.json").read_text()) for each in (out, expected)
        )
        assert {k for k in config if config[k] != other[k]} <= {"command", "created"}
    summary, other = (
        without_times(json.loads((each / "summary.json").read_text())) for each in (out, expected)
    )
    assert summary == other


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if k not in TIMES}
    return [without_times(each) for each in value] if isinstance(value, list) else value


# ---- The GPUs of this machine --------------------------------------------------------------------


def test_two_devices_have_the_numbers_of_one_process(in_one_process: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    request = prepare(tmp_path, *CAMPAIGN, "--workers", "ray", "--out", out)
    assert [run["folder"] for run in request["runs"]] == FOLDERS
    assert request["runs"][0]["label"] == "lambda=1 seed 0"
    schedule = run_all(request, out, ["0", "1"])
    assert not schedule.failures
    assert sorted(schedule.done) == [0, 1, 2, 3]

    # All runs are complete: the program writes the summary without any Python.
    done = aimle(*CAMPAIGN, "--workers", "ray", "--out", out, "--resume")
    assert done.returncode == 0, done.stderr
    assert "selected by val_loss: lambda=" in done.stderr
    assert_same(out, in_one_process)
    command = json.loads((out / FOLDERS[0] / "config.json").read_text())["command"]
    assert "--grid lambda=1,10" in command


def test_only_what_is_left_is_run(in_one_process: Path, tmp_path: Path) -> None:
    """A campaign of one process continues on workers, and the other way round."""
    out = tmp_path / "run"
    request = prepare(tmp_path, *CAMPAIGN, "--workers", "ray", "--out", out)
    request["runs"] = request["runs"][1:2]
    run_all(request, out, ["0"])
    left = prepare(tmp_path, *CAMPAIGN, "--workers", "ray", "--out", out, "--resume")
    assert [run["folder"] for run in left["runs"]] == [*FOLDERS[:1], *FOLDERS[2:]]
    done = aimle(*CAMPAIGN, "--out", out, "--resume")
    assert done.returncode == 0, done.stderr
    assert_same(out, in_one_process)


def test_stopped_runs_have_saved_their_work(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = ["train", "dvae", *SMALL, "--epochs", "100000", "--seeds", "0-2"]
    request = prepare(tmp_path, *command, "--workers", "ray", "--out", out)
    begun = [out / f"seed-{seed}" / "metrics.jsonl" for seed in (0, 1)]
    schedule = Schedule(cells_of(request, str(PROGRAM), out), quiet=True)
    with pytest.raises(Stopped):
        run_on_gpus(schedule, ["0", "1"], 0, lambda: all(each.exists() for each in begun))
    assert not schedule.done
    for seed in (0, 1):
        saved = torch.load(out / f"seed-{seed}" / "checkpoint.pt", weights_only=True)
        assert saved["epoch"] >= 1
    assert not list(out.glob("*/.aimle.lock"))
    assert not (out / "seed-2" / "metrics.jsonl").exists()


def cell_of(program: Path, folder: Path, label: str = "run") -> Cell:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text("{}")
    return Cell(label, str(folder), str(program), [str(folder)], working_folder=str(folder.parent))


def test_every_run_sees_one_device(tmp_path: Path) -> None:
    program = script(tmp_path / "aimle", 'echo "$CUDA_VISIBLE_DEVICES" > "$1/device"')
    cells = [cell_of(program, tmp_path / f"run-{i}") for i in range(6)]
    run_on_gpus(Schedule(cells, quiet=True), ["3", "GPU-5f"], 0, lambda: False)
    devices = {(Path(cell.folder) / "device").read_text().strip() for cell in cells}
    assert devices <= {"3", "GPU-5f"}
    run_on_gpus(Schedule(cells, quiet=True), ["3", "GPU-5f"], 1, lambda: False)
    assert {(Path(cell.folder) / "device").read_text().strip() for cell in cells} == {"3"}


def test_a_run_whose_process_was_killed_continues(tmp_path: Path, capsys) -> None:
    once = 'test -e "$1/died" || { touch "$1/died"; kill -9 $$; }'
    program = script(tmp_path / "aimle", once, 'touch "$1/complete"')
    schedule = Schedule([cell_of(program, tmp_path / "run")])
    run_on_gpus(schedule, ["0"], 0, lambda: False)
    assert schedule.done == [0]
    assert (tmp_path / "run" / "complete").exists()
    assert "run: its worker died (ended by SIGKILL); it continues" in capsys.readouterr().err


def test_a_run_that_always_dies_is_given_up(tmp_path: Path) -> None:
    program = script(tmp_path / "aimle", 'echo x >> "$1/starts"', "kill -9 $$")
    schedule = Schedule([cell_of(program, tmp_path / "run")], quiet=True)
    run_on_gpus(schedule, ["0"], 0, lambda: False)
    assert (tmp_path / "run" / "starts").read_text() == "x\n" * ATTEMPTS
    assert schedule.failures == {0: f"its worker died {ATTEMPTS} times: ended by SIGKILL"}


def test_a_failure_leaves_the_others_alone(tmp_path: Path, capsys, monkeypatch) -> None:
    fails = 'test "$(basename $1)" != second || { echo "aimle: no data" >&2; exit 1; }'
    program = script(tmp_path / "aimle", fails, 'touch "$1/complete"')
    names = ["first", "second", "third"]
    schedule = Schedule([cell_of(program, tmp_path / name, name) for name in names])
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # handlers of the test's process
    code = conduct({"workers": "gpus:0,1", "at_once": 0}, schedule)
    said = capsys.readouterr().err
    assert code == 3
    assert "second: failed: no data" in said
    assert said.splitlines()[-1].startswith(
        "aimle: 1 of 3 runs failed, the first of them second: no data; the others are complete"
    )
    assert (tmp_path / "third" / "complete").exists()


def test_a_machine_without_the_folder_or_the_program_says_so(tmp_path: Path, monkeypatch) -> None:
    missing = Cell("run", str(tmp_path / "elsewhere"), str(PROGRAM), [], working_folder="/")
    result = run_cell(missing)
    assert result.ended == "failed"
    assert "does not see" in result.message
    assert "file system that they share" in result.message
    cell = cell_of(tmp_path / "no_program", tmp_path / "run")
    monkeypatch.setattr("aimle.program.launch.find", lambda: None)
    assert "has no program" in run_cell(cell).message


def test_devices(monkeypatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,GPU-1a")
    assert gpus_of("gpus") == ["2", "GPU-1a"]
    assert gpus_of("gpus:0,3") == ["0", "3"]
    for text in ("gpus:0,0", "gpus:0,,1"):
        with pytest.raises(ValueError, match="expected different GPUs"):
            gpus_of(text)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(ValueError, match="there is no GPU here"):
        gpus_of("gpus")


def test_a_result_is_only_counted_once() -> None:
    schedule = Schedule([Cell("a", "/no", "", []), Cell("b", "/no", "", [])], quiet=True)
    assert [schedule.take(), schedule.take(), schedule.take()] == [0, 1, None]
    schedule.end(1, Result("done"))
    schedule.end(0, Result("died"))
    assert (schedule.standing, schedule.take()) == ("1 of 2 done", 0)


# ---- Misuse --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--seeds", "0-1", "--workers", "slurm"], "expected gpus, gpus:0,1, ray or ray:ADDRESS"),
        (["--seeds", "0-1", "--workers", "ray:"], "expected gpus, gpus:0,1, ray or ray:ADDRESS"),
        (["--seeds", "0-1", "--workers", "gpus"], "the runs train on the CPU; add --device cuda"),
        (["--workers", "ray"], "there is one run only; give --seeds or --grid as well"),
    ],
)
def test_misuse(tmp_path: Path, options: list[str], says: str) -> None:
    result = aimle("train", "dvae", *options, "--out", tmp_path / "run")
    assert result.returncode == 2
    assert says in result.stderr
    assert not (tmp_path / "run").exists()


def test_without_ray_the_remedy_is_named(tmp_path: Path) -> None:
    (tmp_path / "ray.py").write_text("raise ImportError('not here')\n")
    result = subprocess.run(
        [PROGRAM, *CAMPAIGN, "--workers", "ray", "--out", tmp_path / "run"],
        env={**os.environ, "AIMLE_PYTHON": sys.executable, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 1
    assert result.stderr.strip() == "aimle: --workers ray needs Ray: pip install aimle[ray]"
    assert not (tmp_path / "run").exists()


# ---- aimle paper ---------------------------------------------------------------------------------

PAPER = [
    *("paper", "--quick", "--entries", "dvae-k10", "--threads", "1"),
    *("--set", "dvae.examples=60", "--set", "dvae.validation=20", "--set", "dvae.test_examples=20"),
    *("--set", "dvae.nb_samples=2", "--set", "dvae.batch=20", "--set", "dvae.rows=4"),
]


def test_the_paper_on_workers(tmp_path: Path) -> None:
    """Commands of several runs go to the workers; the others run in the program."""
    one, out = tmp_path / "one", tmp_path / "two"
    aimle(*PAPER, "--out", one)
    request = prepare(tmp_path, *PAPER, "--workers", "ray", "--out", out)
    folders = [f"dvae-k10/imle/method={name}" for name in ("imle", "imle_central")]
    assert [run["folder"] for run in request["runs"]] == folders
    run_all(request, out, ["0", "1"])
    done = aimle(*PAPER, "--workers", "ray", "--out", out, "--resume")
    assert "no report was written" in done.stderr  # without Python all but the page is there
    for each in sorted(one.rglob("metrics.jsonl")):
        name = each.parent.relative_to(one)
        assert metrics(out / name) == metrics(one / name), name
    state, other = (json.loads((each / "paper.json").read_text()) for each in (out, one))
    for mine, theirs in zip(state["entries"], other["entries"], strict=True):
        for a, b in zip(mine["commands"], theirs["commands"], strict=True):
            assert a | {"seconds": 0} == b | {"seconds": 0}
            assert a["complete"]
