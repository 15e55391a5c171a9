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
from aimle_program import PROGRAM, aimle, metrics, need_program
from extras import need

ray = need("ray")

LONG = [
    *("train", "dvae", "--examples", "200", "--test_examples", "40", "--validation", "40"),
    *("--batch", "20", "--nb_samples", "2", "--rows", "4", "--seeds", "0-1"),
    *("--checkpoint_steps", "10"),
]


@pytest.fixture(scope="module", autouse=True)
def cluster():
    need_program()
    ray.init(num_cpus=2, include_dashboard=False)
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


def start(out: Path, cluster: str, *options: str) -> subprocess.Popen:
    return subprocess.Popen(
        [PROGRAM, *LONG, *options, "--out", out, "--workers", f"ray:{cluster}"],
        env={**os.environ, "AIMLE_PYTHON": sys.executable},
        stderr=subprocess.PIPE,
        text=True,
    )


def running(process: subprocess.Popen, count: int) -> dict[str, int]:
    """The processes of the runs, by their names, once so many have begun."""
    found: dict[str, int] = {}
    assert process.stderr is not None
    for line in process.stderr:
        if said := re.match(r"(seed \d): running \(process (\d+) on ", line):
            found[said[1]] = int(said[2])
        if len(found) == count:
            return found
    raise AssertionError("the campaign ended before its runs began")


def process_in(folder: Path, campaign: int) -> int:
    """The process of the run in this folder, as soon as it has locked it."""
    while True:
        with contextlib.suppress(OSError):
            owner = re.match(r"process (\d+) on ", (folder / ".aimle.lock").read_text())
            if owner and int(owner[1]) != campaign:  # which prepares the folder
                return int(owner[1])
        time.sleep(0.005)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_worker_killed_in_mid_run_is_replaced(tmp_path: Path, cluster: str) -> None:
    one, out = tmp_path / "one", tmp_path / "two"
    done = aimle(*LONG, "--epochs", "25", "--out", one)
    assert done.returncode == 0, done.stderr
    process = start(out, cluster, "--epochs", "25")
    os.kill(parent_of(process_in(out / "seed-0", campaign=process.pid)), signal.SIGKILL)
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
    pids = running(process, 2)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 130, said
    assert f"aimle: stopped; continue with --resume --out {out}" in said
    for pid in pids.values():
        assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text()
    for seed in ("seed-0", "seed-1"):
        assert (out / seed / "checkpoint.pt").exists()
    left = len(metrics(out / "seed-0")) + 2
    process = start(out, cluster, "--resume", "--epochs", str(left))
    _, said = process.communicate(timeout=600)
    assert process.returncode == 0, said


def test_no_cluster_at_the_address(tmp_path: Path) -> None:
    process = start(tmp_path / "run", "127.0.0.1:1", "--epochs", "1")
    _, said = process.communicate(timeout=600)
    assert process.returncode == 1
    assert "aimle: --workers ray:127.0.0.1:1: no Ray cluster at 127.0.0.1:1" in said
