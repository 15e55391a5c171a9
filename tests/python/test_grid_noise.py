"""Noise that suits paths over costs: its default, its mean, and what is clipped of it."""

import pytest
import torch
from torch import Tensor

import aimle

GRID = aimle.GridPath()
KEY = torch.tensor([5, 8])
SCALED = aimle.AdaptiveTarget(scale="noise", rule="multiplicative")
PAPER = aimle.AdaptiveTarget(scale="theta", rule="additive")
LAYERS = {
    "aimle": lambda solver, **given: aimle.AIMLE(solver, target=SCALED, **given),
    "imle": lambda solver, **given: aimle.IMLE(solver, 2.0, **given),
    "ste": lambda solver, **given: aimle.STE(solver, **given),
    "aimle_covariance": lambda solver, **given: aimle.CovarianceAIMLE(
        solver, target=SCALED, **given
    ),
}


class Paths:
    """A callable whose solutions vary in size."""

    sense, instance_dims, fixed_size = "min", 2, False

    def __call__(self, costs: Tensor) -> Tensor:
        return GRID(costs)


@pytest.mark.parametrize("name", LAYERS)
def test_layers_over_costs_have_normal_noise_of_their_scale(name: str):
    for solver in (GRID, Paths()):
        layer = LAYERS[name](solver)
        assert (layer.noise, layer.theta_noise_temperature) == (aimle.Normal(), 0.3)
        layer = LAYERS[name](solver, noise="gumbel", theta_noise_temperature=2)
        assert (layer.noise, layer.theta_noise_temperature) == (aimle.Gumbel(), 2.0)
    for solver in (aimle.TopK(3), aimle.SpanningTree(4), lambda x: x):
        layer = LAYERS[name](solver)
        assert (layer.noise, layer.theta_noise_temperature) == (aimle.Gumbel(), 1.0)


@pytest.mark.parametrize("target", [PAPER, aimle.AdaptiveTarget.reference()])
def test_published_rules_keep_gumbel_noise_over_costs(target: aimle.AdaptiveTarget):
    layer = aimle.AIMLE(GRID, target=target)
    assert (layer.noise, layer.theta_noise_temperature) == (aimle.Gumbel(), 1.0)


def test_none_is_no_noise_and_auto_is_a_word_of_layers_alone():
    assert aimle.IMLE(GRID, noise=None).noise is None
    with pytest.raises(ValueError, match="expected noise to be 'gumbel'"):
        aimle.IMLE(GRID, noise="automatic")
    with pytest.raises(ValueError, match="expected noise to be 'gumbel'"):
        aimle.sample_noise("auto", (2, 3), KEY)


def test_few_costs_are_clipped_by_the_default_noise():
    costs = 0.5 + torch.rand(20, 12, 12, generator=torch.Generator().manual_seed(0))
    layer = aimle.IMLE(GRID, 1.0)
    eps = aimle.sample_noise(layer.noise, costs.shape, KEY, nb_samples=10, instance_dims=2)
    x = costs.unsqueeze(1) - layer.theta_noise_temperature * eps
    assert (x < 0).double().mean() < 0.01
