"""`aimle train --device cuda`: recorded steps, parallel runs, and the results of the CPU."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import torch
from aimle_program import metrics

SHORT = {
    "dvae": "--examples 400 --test_examples 40 --validation 40 --batch 20 --nb_samples 2",
    "l2x": "--examples 200 --heldout 40 --annotated 20 --planted 4 --k 4 --dimensions 30 "
    "--batch 20",
    "nri": "--hidden 24 --batch 32 --epoch_steps 12 --examples 800 --validation 100 "
    "--test_examples 100 --lr 1e-3",
    "warcraft": "--cells 4 --examples 200 --test_examples 40 --validation 20 --batch 20",
}


def train(program: Path, out: Path, experiment: str, options: str = "") -> None:
    given = options.split()
    kept = f"--epochs 2 --device cuda {SHORT[experiment]}".split()
    for name, value in zip(kept[::2], kept[1::2], strict=True):
        if name not in given:
            given += [name, value]
    done = subprocess.run(
        [program, "train", experiment, "--quiet", "--out", out, *given],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def model(folder: Path) -> dict[str, torch.Tensor]:
    return torch.load(folder / "checkpoint.pt", weights_only=True, map_location="cpu")["model"]


def distance(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> float:
    """Of the parameters, relative."""
    assert a.keys() == b.keys()
    far = sum((a[name].double() - b[name].double()).square().sum() for name in a)
    size = sum(b[name].double().square().sum() for name in a)
    return float((far / size).sqrt())


@pytest.mark.parametrize("experiment", SHORT)
def test_recorded_steps_are_the_plain_ones(
    experiment: str, program: Path, tmp_path: Path, gpu: torch.device
) -> None:
    """Sums by atomic additions have no fixed order on a GPU, so the bits may differ."""
    train(program, tmp_path / "recorded", experiment)
    train(program, tmp_path / "plain", experiment, "--graph false")
    assert distance(model(tmp_path / "recorded"), model(tmp_path / "plain")) < 1e-3


@pytest.mark.parametrize("experiment", SHORT)
def test_the_first_losses_are_those_of_the_cpu(
    experiment: str, program: Path, tmp_path: Path, gpu: torch.device
) -> None:
    few = "--epochs 1 --checkpoint_steps 1"
    train(program, tmp_path / "gpu", experiment, few)
    train(program, tmp_path / "cpu", experiment, f"{few} --device cpu --threads 1")
    on_gpu, on_cpu = (metrics(tmp_path / name)[-1] for name in ("gpu", "cpu"))
    assert on_gpu["train_loss"] == pytest.approx(on_cpu["train_loss"], rel=0.02)


@pytest.mark.parametrize("experiment", SHORT)
def test_runs_side_by_side_are_the_runs_alone(
    experiment: str, program: Path, tmp_path: Path, gpu: torch.device
) -> None:
    train(program, tmp_path / "together", experiment, "--seeds 0-5 --threads 6")
    for seed in (0, 4):
        train(program, tmp_path / str(seed), experiment, f"--seed {seed}")
        beside = tmp_path / "together" / f"seed-{seed}"
        assert distance(model(beside), model(tmp_path / str(seed))) < 1e-3


def test_the_discrete_vae_has_the_same_bits_every_time(
    program: Path, tmp_path: Path, gpu: torch.device
) -> None:
    train(program, tmp_path / "together", "dvae", "--seeds 0-5 --threads 6")
    train(program, tmp_path / "alone", "dvae", "--seed 3")
    train(program, tmp_path / "parts", "dvae", "--seed 3 --epochs 1")
    train(program, tmp_path / "parts", "dvae", "--seed 3 --resume")
    alone = metrics(tmp_path / "alone")
    assert metrics(tmp_path / "together" / "seed-3") == alone
    assert metrics(tmp_path / "parts") == alone
    assert distance(model(tmp_path / "parts"), model(tmp_path / "alone")) == 0.0
