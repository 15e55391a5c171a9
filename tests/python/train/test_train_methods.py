"""`aimle train`: every experiment with every method that applies to its solver, on both devices."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from aimle_program import aimle, metrics

OF_LAYERS = "aimle aimle_forward aimle_noise aimle_covariance imle imle_central ste identity dpo"
CLOSED_FORM = "thresholds sfe sst exact"

# The options of a small run, and the methods; dbb, which takes no samples, goes with all.
EXPERIMENTS = {
    "dvae": (
        "--examples 160 --test_examples 20 --validation 20 --batch 20",
        f"{OF_LAYERS} {CLOSED_FORM} softsub l2x",
    ),
    "l2x": (
        "--examples 80 --heldout 40 --annotated 20 --planted 4 --k 4 --dimensions 8 --batch 10",
        f"{OF_LAYERS} {CLOSED_FORM} softsub l2x gumbel_softmax gumbel_rao reinmax",
    ),
    "nri": (
        "--hidden 8 --batch 16 --epoch_steps 6 --examples 100 --validation 20 --test_examples 20",
        f"{OF_LAYERS} {CLOSED_FORM}",
    ),
    "warcraft": (
        "--cells 3 --examples 72 --test_examples 8 --validation 8 --batch 12",
        OF_LAYERS,
    ),
}


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_method_trains(
    experiment: str, device: torch.device, program: Path, tmp_path: Path
) -> None:
    """On a GPU the last steps of a run are a recorded graph, which nothing may wait in."""
    options, methods = EXPERIMENTS[experiment]
    small = ["train", experiment, "--quiet", "--epochs", 1, "--device", device, *options.split()]
    grid = ["--nb_samples", 2, "--threads", 2, "--grid", f"method={methods.replace(' ', ',')}"]
    for name, given in {"grid": grid, "dbb": ["--method", "dbb"]}.items():
        done = aimle(*small, *given, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
    folders = {name: tmp_path / "grid" / f"method={name}" for name in methods.split()}
    for method, folder in {**folders, "dbb": tmp_path / "dbb"}.items():
        line = metrics(folder)[-1]
        losses = [line[name] for name in ("train_loss", "test_loss", "val_elbo") if name in line]
        assert len(losses) > 1, method
        assert all(math.isfinite(loss) for loss in losses), method
        assert losses[0] > 0, method
