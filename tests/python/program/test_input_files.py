"""Unreadable and malformed files: an error of one line that names the file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from aimle_program import aimle, fails, need_program

pytestmark = pytest.mark.usefixtures("_program")


@pytest.fixture
def _program() -> None:
    need_program()


def diagnosis(folder: Path, theta: Path) -> list[dict]:
    options = ["--samples", 10, "--repeats", 20, "--warmup", 20, "--estimators", "ste"]
    result = aimle("diagnose", "--theta", theta, "--out", folder, "--n", 3, *options,
                   "--structure", "grid_path")  # fmt: skip
    assert result.returncode == 0, result.stderr
    return [
        {name: value for name, value in row.items() if name != "microseconds"}
        for row in json.loads((folder / "diagnosis.json").read_text())["results"]
    ]


def test_theta_in_every_form_gives_the_same(tmp_path: Path) -> None:
    theta = np.random.default_rng(0).uniform(1, 2, (3, 3)).astype(np.float32)
    np.save(tmp_path / "c.npy", theta)
    np.save(tmp_path / "fortran.npy", np.asfortranarray(theta))
    np.savez(tmp_path / "one.npz", whatever=theta)
    np.savez_compressed(tmp_path / "several.npz", other=np.ones(4), theta=theta)
    expected = diagnosis(tmp_path / "out_c", tmp_path / "c.npy")
    for name in ("fortran.npy", "one.npz", "several.npz"):
        assert diagnosis(tmp_path / f"out_{name}", tmp_path / name) == expected, name


def test_an_archive_without_the_array_lists_its_names(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", first=np.ones(3), second=np.ones(3))
    says = f"{tmp_path / 'a.npz'}: expected a member theta.npy but the archive holds first.npy, sec"
    fails("diagnose", "--theta", tmp_path / "a.npz", code=1, says=says)


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    for name in ("pipe.npy", "pipe.json", "train-images-idx3-ubyte", "pipe.txt"):
        os.mkfifo(tmp_path / name)
    says = "expected a regular file but it is a named pipe"
    out = ["--out", tmp_path / "out"]
    fails("diagnose", "--theta", tmp_path / "pipe.npy", *out, code=1, says=f"pipe.npy: {says}")
    fails("train", "dvae", "--config", tmp_path / "pipe.json", *out, code=2, says=says)
    small = ["--examples", 20, "--heldout", 10, "--annotated", 5]
    fails("train", "l2x", *small, "--vectors", tmp_path / "pipe.txt", *out, code=1, says=says)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(b"")
    fails("data", "check", tmp_path, code=1, says=f"train-images-idx3-ubyte: {says}")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    fails("diagnose", "--theta", tmp_path / "zero.csv", *out, code=1, says="but it is a device")


def test_a_folder_in_place_of_a_file_of_images(tmp_path: Path) -> None:
    (tmp_path / "train-images-idx3-ubyte").mkdir()
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(b"")
    says = "train-images-idx3-ubyte: expected a regular file but it is a folder"
    fails("data", "check", tmp_path, code=1, says=says)


def test_an_archive_in_place_of_the_folder_of_maps(tmp_path: Path) -> None:
    np.savez(tmp_path / "maps.npz", maps=np.zeros(1))
    says = "maps.npz: expected a folder with train_maps.npy, ... or train.npz and test.npz"
    data = ["--data", tmp_path / "maps.npz", "--out", tmp_path / "out"]
    fails("train", "warcraft", *data, code=1, says=says)


def test_damaged_results_are_refused(tmp_path: Path) -> None:
    command = ["synth", "samples", "--n", 5, "--seeds", 2, "--samples", "1,10", "--warmup", 3,
               "--estimators", "ste,sfe", "--out", tmp_path]  # fmt: skip
    assert aimle(*command).returncode == 0
    results = tmp_path / "results.jsonl"
    whole = results.read_bytes()
    results.write_bytes(whole[:-25])
    fails(
        *command, "--resume", code=1, says=f"{results}:8: the line is incomplete: start again with"
    )

    lines = whole.splitlines(keepends=True)
    results.write_bytes(b"".join([lines[0], b'{"estimator": "ste", "n"\n', *lines[2:]]))
    fails(*command, "--resume", code=1, says=f"{results}:2: the JSON text is truncated")
    results.write_bytes(b"".join([lines[0], b'{"estimator": "ste"}\n', *lines[2:]]))
    fails(*command, "--resume", code=1, says=f"{results} is damaged: its checksum is not in")
    results.write_bytes(whole)
    (tmp_path / "study.json").write_text("[]")
    fails(*command, "--resume", code=1, says="study.json does not describe a study")
