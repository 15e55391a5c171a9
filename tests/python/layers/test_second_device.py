"""Results are on the device of theta, not on the current one (with a fake second GPU)."""

from __future__ import annotations

import pytest
import torch
from gpu_cases import SOLVERS
from torch._subclasses.fake_tensor import FakeTensorMode

import aimle

SECOND = torch.device("cuda:1")


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_layer(solver: str):
    kind, shape = SOLVERS[solver]
    # What a solver brings along (weights, a graph) is a tensor that is not fake.
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        layer = aimle.AIMLE(kind, nb_samples=3).to(SECOND)
        z = layer(torch.rand(2, *shape, device=SECOND))
    assert z.device == SECOND
    assert all(buffer.device == SECOND for buffer in layer.buffers())


@pytest.mark.parametrize("name", [name for name in aimle.estimators() if "_" not in name])
def test_an_estimator(name: str):
    solver = aimle.Argmax() if name == "reinmax" else aimle.TopK(2)
    with FakeTensorMode(), torch.no_grad():
        theta = torch.rand(2, 6, device=SECOND)
        z = aimle.estimator(name, solver).to(SECOND)(theta, key=aimle.draw_key(theta))
    assert z.device == SECOND


def test_functions():
    with FakeTensorMode(), torch.no_grad():
        theta = torch.rand(2, 6, device=SECOND)
        key = aimle.draw_key(theta)
        found = {
            "key": key,
            "solution": aimle.solve(aimle.TopK(2), theta),
            "noise": aimle.sample_noise(aimle.SumOfGamma(2), (3, 4), key),
            "marginals": aimle.exact.marginals(aimle.TopK(2), theta),
            "samples": aimle.exact.sample(aimle.TopK(2), theta, nb_samples=2, key=key),
        }
    assert {name: each.device for name, each in found.items()} == dict.fromkeys(found, SECOND)
