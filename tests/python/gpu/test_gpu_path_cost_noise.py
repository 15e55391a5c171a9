"""Noise over costs on the GPU: centred as on the CPU, and the same share of costs clipped."""

import pytest
import torch
from layer_cases import leaf, randn
from path_costs import GRID, KEY, NOISES, SCALED, Paths

import aimle

pytestmark = pytest.mark.usefixtures("gpu")


@pytest.mark.parametrize("shape", [(4, 5), (12, 12), (40, 40)], ids=str)
@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
@pytest.mark.parametrize("solver", [GRID, Paths()], ids=["native", "callable"])
def test_centred_noise_gives_the_bits_of_the_cpu(solver, noise: aimle.Noise, shape: tuple):
    costs = 0.5 + randn(6, *shape, dtype=torch.float32).abs()
    dy = randn(6, 3, *shape, seed=2, dtype=torch.float32)
    for make in (
        lambda: aimle.IMLE(solver, 1.0, noise=noise, nb_samples=3),
        lambda: aimle.AIMLE(
            solver, noise=noise, nb_samples=3, target=SCALED, target_noise_temperature=0.7
        ),
    ):
        results = []
        for device in ("cpu", "cuda"):
            layer, rows = make().to(device), leaf(costs.to(device))
            z = layer(rows, key=KEY.to(device))
            z.backward(dy.to(device))
            stats = {name: value.cpu() for name, value in layer.stats().items()}
            results.append((z.detach().cpu(), rows.grad.cpu(), stats))
        assert torch.equal(results[0][0], results[1][0])
        assert torch.equal(results[0][1], results[1][1])
        torch.testing.assert_close(results[0][2], results[1][2], rtol=0, atol=0, equal_nan=True)
        assert solver is not GRID or results[1][2]["clipped_share"] > 0
