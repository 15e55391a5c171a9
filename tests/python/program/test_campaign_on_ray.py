"""`aimle train --workers ray`: a campaign on a Ray cluster of two workers on this machine."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from aimle_program import PROGRAM, aimle, metrics, need_program
from extras import need, start_ray

ray = need("ray")

LONG = [
    *("train", "dvae", "--examples", "200", "--test_examples", "40", "--validation", "40"),
    *("--batch", "20", "--nb_samples", "2", "--rows", "4", "--seeds", "0-1"),
    *("--checkpoint_steps", "10"),
]


@pytest.fixture(scope="module", autouse=True)
def cluster():
    need_program()
    start_ray()
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


def start(out: Path, cluster: str, *options: str) -> subprocess.Popen:
    return subprocess.Popen(
        [PROGRAM, *LONG, *options, "--out", out, "--workers", f"ray:{cluster}"],
        env={**os.environ, "AIMLE_PYTHON": sys.executable},
        stderr=subprocess.PIPE,
        text=True,
    )


def process_in(folder: Path, campaign: subprocess.Popen) -> int:
    """The process of the run in this folder, as soon as it has locked it."""
    while campaign.poll() is None:
        with contextlib.suppress(OSError):
            owner = re.match(r"process (\d+) on ", (folder / ".aimle.lock").read_text())
            if owner and int(owner[1]) != campaign.pid:  # which prepares the folder
                return int(owner[1])
        time.sleep(0.005)
    raise AssertionError("the campaign ended before its runs began")


def status_of(pid: int) -> list[str]:
    """State, parent and so on, as in proc(5)."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def parent_of(pid: int) -> int:
    return int(status_of(pid)[1])


def is_running(pid: int) -> bool:
    """Not ended, nor waiting to be noticed by its parent."""
    try:
        return status_of(pid)[0] != "Z"
    except OSError:
        return False


def test_a_worker_killed_in_mid_run_is_replaced(tmp_path: Path, cluster: str) -> None:
    one, out = tmp_path / "one", tmp_path / "two"
    done = aimle(*LONG, "--epochs", "25", "--out", one)
    assert done.returncode == 0, done.stderr
    process = start(out, cluster, "--epochs", "25")
    os.kill(parent_of(process_in(out / "seed-0", process)), signal.SIGKILL)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 0, said
    assert "seed 0: its worker died" in said
    assert "2 of 2 done" in said
    for seed in ("seed-0", "seed-1"):
        assert metrics(out / seed) == metrics(one / seed)
    assert (out / "summary.json").exists()


def test_ctrl_c_saves_and_the_campaign_continues(tmp_path: Path, cluster: str) -> None:
    out = tmp_path / "run"
    process = start(out, cluster, "--epochs", "100000")
    folders = [out / "seed-0", out / "seed-1"]
    pids = [process_in(folder, process) for folder in folders]
    while not all((folder / "checkpoint.pt").exists() for folder in folders):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 130, said
    assert f"aimle: stopped; continue with --resume --out {out}" in said
    assert not any(is_running(pid) for pid in pids)
    epochs = max(torch.load(each / "checkpoint.pt", weights_only=True)["epoch"] for each in folders)
    process = start(out, cluster, "--resume", "--epochs", str(epochs + 2))
    _, said = process.communicate(timeout=600)
    assert process.returncode == 0, said
    assert [len(metrics(folder)) for folder in folders] == [epochs + 2] * 2


def test_no_cluster_at_the_address(tmp_path: Path) -> None:
    process = start(tmp_path / "run", "127.0.0.1:1", "--epochs", "1")
    _, said = process.communicate(timeout=600)
    assert process.returncode == 1
    assert "aimle: --workers ray:127.0.0.1:1: no Ray cluster at 127.0.0.1:1" in said
