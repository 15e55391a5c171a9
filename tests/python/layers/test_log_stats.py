"""`aimle.log_stats`: what a layer sees, in a log."""

import os
import subprocess
import sys

import torch
from repository import ROOT

import aimle as library


def test_stats_go_to_any_callable():
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.choose = library.AIMLE(library.TopK(2))

    model = Model()
    written: list[tuple[str, float, int]] = []
    first = library.log_stats(model, lambda *entry: written.append(entry), 0)
    assert set(first) == {"aimle/choose/alpha", "aimle/choose/gbar", "aimle/choose/updates"}
    z = model.choose(torch.randn(4, 6, requires_grad=True))
    z.square().sum().backward()
    library.log_stats(model.choose, lambda *entry: written.append(entry), 7, prefix="layer")
    assert ("layer/updates", 1.0, 7) in written
    assert any(name == "layer/lambda_mean" for name, _, _ in written)


def test_the_example_logs_every_number():
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, str(ROOT / "examples/log_stats.py")]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    names = {name for _, name, _ in lines}
    assert {"loss", "aimle/alpha", "aimle/lambda_mean", "aimle/count"} <= names
    losses = [float(value) for _, name, value in lines if name == "loss"]
    assert losses[-1] < losses[0]
