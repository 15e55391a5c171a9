"""`aimle train nri` and `aimle train l2x` on tiny data: each learns, and shows what it learned."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest

NRI = (
    "--hidden 24 --batch 32 --epoch_steps 25 --epochs 2 --lr 2e-3 "
    "--examples 800 --validation 100 --test_examples 100"
)
L2X = (
    "--examples 1000 --heldout 200 --annotated 60 --planted 4 --k 4 --dimensions 30 "
    "--batch 20 --epochs 2"
)


def train(program: Path, experiment: str, options: str, out: Path) -> list[dict[str, Any]]:
    done = subprocess.run(
        [program, "train", experiment, "--quiet", "--threads", "1", "--out", out, *options.split()],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def without_times(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    times = {"examples_per_second", "peak_memory_mib"}
    return [
        {k: v for k, v in line.items() if not k.startswith("seconds") and k not in times}
        for line in lines
    ]


@pytest.mark.parametrize("preset", ["", "--preset reference "])
def test_nri_learns_to_predict_paths(program: Path, preset: str, tmp_path: Path) -> None:
    lines = train(program, "nri", preset + NRI, tmp_path)
    assert [line["epoch"] for line in lines] == [0, 1, 2]
    assert lines[0]["train_loss"] is None
    # An untrained decoder scatters the points; 50 steps remove more than half of that error.
    assert lines[-1]["val_elbo"] > 0.5 * lines[0]["val_elbo"]
    for line in lines:
        assert line["val_elbo"] == pytest.approx(-line["val_nll"] - line["val_kl"], rel=1e-6)
        drawn = line["val_tree_nll"] + line["val_tree_kl"]
        assert line["val_tree_elbo"] == pytest.approx(-drawn, rel=1e-6)
        assert 0 <= line["val_tree_kl"] <= 0.8 * math.log(10)  # 10^8 trees, ten points
        if not preset:  # a tree has nine links, and so has the true one
            assert line["val_precision"] == pytest.approx(line["val_recall"])
            assert line["val_accuracy"] == pytest.approx(60 + 0.4 * line["val_precision"])
    # The test set is measured where validation was never better.
    best = max(lines, key=lambda line: line["val_elbo"])
    assert "test_elbo" in best
    graphs = json.loads((tmp_path / "exhibits.json").read_text())
    assert len(graphs) == 6
    for graph in graphs:
        assert len(graph["tree"]) == len(graph["true_tree"]) == 9
        assert len(graph["path"]) == len(graph["path"][0]) == 10
        assert len(graph["predicted"][0]) == 9


def test_nri_continues_where_it_stopped(program: Path, tmp_path: Path) -> None:
    short = NRI.replace("--epoch_steps 25", "--epoch_steps 7")
    whole = train(program, "nri", short, tmp_path / "whole")
    train(program, "nri", short.replace("--epochs 2", "--epochs 1"), tmp_path / "parts")
    parts = train(program, "nri", "--resume --epochs 2", tmp_path / "parts")
    assert without_times(parts) == without_times(whole)


def test_l2x_finds_the_planted_words(program: Path, tmp_path: Path) -> None:
    lines = train(program, "l2x", L2X, tmp_path)
    # Guessing finds one planted word in twenty.
    assert lines[-1]["precision"] > 60
    assert lines[-1]["val_loss"] < 0.7 * lines[0]["val_loss"]
    reviews = json.loads((tmp_path / "exhibits.json").read_text())
    assert len(reviews) == 8
    for review in reviews:
        assert len(review["chosen"]) == 4
        assert len(review["annotated"]) == 4
        assert max(review["chosen"] + review["annotated"]) < len(review["words"])


def test_a_listing_counts_the_epochs_of_training(program: Path, tmp_path: Path) -> None:
    """Not the measurement before it."""
    short = NRI.replace("--epoch_steps 25", "--epoch_steps 2").replace("--epochs 2", "--epochs 1")
    assert len(train(program, "nri", short, tmp_path / "run")) == 2
    listed = subprocess.run([program, "list", tmp_path], capture_output=True, text=True, check=True)
    assert " 1/1 " in listed.stdout


@pytest.mark.parametrize("method", ["aimle", "gumbel_softmax", "l2x", "softsub", "exact"])
def test_l2x_with_reviews_of_fewer_than_k_words(program: Path, method: str, tmp_path: Path) -> None:
    tiny = L2X.replace("--examples 1000", "--examples 60").replace("--epochs 2", "--epochs 1")
    lines = train(program, "l2x", f"--method {method} {tiny.replace('--k 4', '--k 80')}", tmp_path)
    assert 0 < lines[-1]["test_loss"] < 100
    reviews = json.loads((tmp_path / "exhibits.json").read_text())
    assert any(len(review["words"]) < 80 for review in reviews)
    assert all(len(r["chosen"]) == min(80, len(r["words"])) for r in reviews)


def test_l2x_as_the_authors_did(program: Path, tmp_path: Path) -> None:
    tiny = L2X.replace("--examples 1000", "--examples 60").replace("--epochs 2", "--epochs 1")
    lines = train(program, "l2x", f"--preset reference --length 160 {tiny}", tmp_path)
    assert 0 < lines[-1]["test_loss"] < 100
    for review in json.loads((tmp_path / "exhibits.json").read_text()):
        assert max(review["annotated"]) < len(review["words"])


def test_l2x_splits_the_held_out_reviews_anew_for_every_seed(program: Path, tmp_path: Path) -> None:
    tiny = L2X.replace("--examples 1000", "--examples 60").replace("--epochs 2", "--epochs 1")
    losses = [
        train(program, "l2x", f"{tiny} --seed {seed}", tmp_path / str(seed))[-1]["test_loss"]
        for seed in (0, 1)
    ]
    assert losses[0] != losses[1]
