"""Real costs: two maps of the Warcraft shortest-path data set."""

from pathlib import Path

import numpy as np
import pytest
import torch

import aimle


def test_shortest_paths_of_two_maps(data: Path, device: torch.device):
    file = data / "warcraft_samples" / "samples.npz"
    if not file.is_file():
        pytest.skip(f"{file} is not there")
    samples = np.load(file)
    costs = torch.from_numpy(samples["vertex_weights"]).to(device)
    z = aimle.GridPath()(costs)
    optimal = (costs.double() * z).sum((1, 2)).cpu()
    torch.testing.assert_close(optimal, torch.tensor([27.0, 28.6]).double(), rtol=0, atol=1e-5)
    labels = torch.from_numpy(samples["shortest_paths"]).to(costs)
    torch.testing.assert_close((costs.double() * labels).sum((1, 2)).cpu(), optimal)
