"""`aimle train warcraft`: files in the public format, the network, the scores, every method."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from aimle_program import metrics
from torch import nn

import aimle

COSTS = np.array([0.8, 1.2, 5.3, 7.7, 9.2], np.float16)


def train(program: Path, out: Path, *options: str) -> list[dict[str, Any]]:
    command = [program, "train", "warcraft", "--out", out, "--threads", "1", "--quiet", *options]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return metrics(out) if (out / "metrics.jsonl").exists() else []


def write_maps(folder: Path, split: str, count: int, seed: int, parts: int = 1) -> None:
    """Maps whose colour tells the cost, in the files and types of the public sets."""
    random = np.random.default_rng(seed)
    terrain = random.integers(0, 5, (count, 4, 4))
    colours = np.array([[50, 80, 10], [103, 65, 8], [17, 120, 8], [13, 52, 95], [74, 74, 74]])
    noise = random.integers(-8, 8, (count, 32, 32, 3))
    images = np.clip(colours[terrain.repeat(8, 1).repeat(8, 2)] + noise, 0, 255).astype(np.uint8)
    costs = COSTS[terrain]
    paths = aimle.solve(aimle.GridPath(), torch.from_numpy(costs.astype(np.float32)))
    arrays = {
        "maps": images,
        "vertex_weights": costs,
        "shortest_paths": paths.numpy().astype(np.uint8),
    }
    for name, array in arrays.items():
        for number, part in enumerate(np.array_split(array, parts)):
            np.save(folder / f"{split}_{name}{f'_part{number}' if parts > 1 else ''}.npy", part)


class BasicBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(64, 64, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.conv2 = nn.Conv2d(64, 64, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.bn2(self.conv2(self.bn1(self.conv1(x)).relu())) + x).relu()


class CombResnet18(nn.Module):
    """The network of the public code, in plain PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.stages = nn.Sequential(BasicBlock(), BasicBlock())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.max_pool2d(self.bn1(self.conv1(x)).relu(), 3, stride=2, padding=1)
        return nn.functional.adaptive_max_pool2d(self.stages(x), (4, 4)).mean(1).abs()


def test_files_network_and_scores(program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "4x4"
    folder.mkdir(parents=True)
    write_maps(folder, "train", 120, 1, parts=2)
    write_maps(folder, "val", 20, 2)
    write_maps(folder, "test", 30, 3)
    options = ["--data", tmp_path / "data", "--cells", "4", "--batch", "20", "--epochs", "2"]
    lines = train(program, tmp_path / "run", *options, "--method", "imle")
    model = CombResnet18().eval()
    checkpoint = torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)
    model.load_state_dict(checkpoint["model"])

    pixels = np.concatenate([np.load(folder / f"train_maps_part{p}.npy") for p in (0, 1)])
    mean, std = pixels.mean((0, 1, 2)), pixels.std((0, 1, 2))
    for split in ("test", "val"):
        images = (np.load(folder / f"{split}_maps.npy") - mean) / std
        costs = torch.from_numpy(np.load(folder / f"{split}_vertex_weights.npy")).double()
        truth = torch.from_numpy(np.load(folder / f"{split}_shortest_paths.npy")).double()
        with torch.no_grad():
            predicted = model(torch.from_numpy(images).float().permute(0, 3, 1, 2))
        z = aimle.solve(aimle.GridPath(), predicted).double()
        ratio = (costs * z).sum((1, 2)) / (costs * truth).sum((1, 2))
        expected = {
            "loss": (z != truth).double().sum((1, 2)).mean(),
            "optimal": (ratio - 1 < 1e-6).double().mean(),
            "perfect_match": (z == truth).all(2).all(1).double().mean(),
            "cost_ratio": ratio.mean(),
            "valid": 1.0,
        }
        for name, value in expected.items():
            assert lines[-1][f"{split}_{name}"] == pytest.approx(float(value), abs=1e-6), name


def test_it_learns(program: Path, tmp_path: Path) -> None:
    options = ["--cells", "6", "--examples", "400", "--test_examples", "200", "--validation", "0"]
    lines = train(program, tmp_path / "run", *options, "--batch", "20", "--epochs", "3")
    first, last = lines[0], lines[-1]
    assert last["train_loss"] < 0.8 * first["train_loss"]
    assert last["test_optimal"] > 0.55  # before training: 0.41
    assert all(isinstance(last[name], float) for name in ("alpha", "lambda", "count"))
    assert (tmp_path / "run" / "pictures" / "paths.png").read_bytes().startswith(b"\x89PNG")


def test_every_method_runs(program: Path, tmp_path: Path) -> None:
    tiny = ["--cells", "3", "--examples", "24", "--test_examples", "8", "--validation", "8"]
    tiny += ["--batch", "12", "--epochs", "1"]
    two = ["--nb_samples", "2"]
    methods = "aimle aimle_forward aimle_noise aimle_covariance imle imle_central identity ste dpo"
    train(program, tmp_path / "grid", *tiny, *two, "--grid", f"method={methods.replace(' ', ',')}")
    runs = {
        method: metrics(tmp_path / "grid" / f"method={method}")[0] for method in methods.split()
    }
    runs["dbb"] = train(program, tmp_path / "dbb", *tiny, "--method", "dbb")[0]
    runs["fenchel_young"] = train(program, tmp_path / "fy", *tiny, *two, "--loss", "fenchel_young")[
        0
    ]
    runs["resnet18"] = train(program, tmp_path / "mask", *tiny, "--model", "resnet18")[0]
    for method, line in runs.items():
        numbers = [
            v for k, v in line.items() if k not in ("lambda", "count")
        ]  # none without a step
        assert np.isfinite(numbers).all(), method
        if method != "resnet18":
            assert line["test_valid"] == 1, method


def test_a_stopped_run_ends_the_same(program: Path, tmp_path: Path) -> None:
    tiny = ["--cells", "3", "--examples", "40", "--test_examples", "8", "--validation", "8"]
    tiny += ["--batch", "20", "--nb_samples", "2", "--schedule", "true"]
    whole = train(program, tmp_path / "whole", *tiny, "--epochs", "2")
    train(program, tmp_path / "parts", *tiny, "--epochs", "1")
    assert train(program, tmp_path / "parts", *tiny, "--epochs", "2", "--resume") == whole


def test_maps_of_another_size_are_refused(program: Path, tmp_path: Path) -> None:
    write_maps(tmp_path, "train", 5, 1)
    write_maps(tmp_path, "test", 5, 2)
    with pytest.raises(AssertionError, match="expected maps of 12 x 12 cells but they have 4"):
        train(program, tmp_path / "run", "--data", tmp_path)
