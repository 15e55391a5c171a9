"""Noise over path costs: the default, the mean, and clipping."""

import pytest
import torch
from layer_cases import leaf, randn
from path_costs import GRID, KEY, NOISES, SCALED, Paths
from torch import Tensor

import aimle
from aimle.callable_solver.staged import with_setting

PAPER = aimle.AdaptiveTarget(scale="theta", rule="additive")
LAYERS = {
    "aimle": lambda solver, **given: aimle.AIMLE(solver, target=SCALED, **given),
    "imle": lambda solver, **given: aimle.IMLE(solver, 2.0, **given),
    "ste": lambda solver, **given: aimle.STE(solver, **given),
    "aimle_covariance": lambda solver, **given: aimle.CovarianceAIMLE(
        solver, target=SCALED, **given
    ),
}


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


# ---- The mean ------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_means_of_noises(noise: aimle.Noise):
    draws = aimle.sample_noise(noise, (1000, 1000), KEY).double()
    assert abs(draws.mean() - noise.mean) < 5 * noise.stddev / 1000
    assert aimle.Normal().mean == aimle.Logistic().mean == 0.0


@pytest.mark.parametrize("solver", [GRID, Paths()], ids=["native", "callable"])
@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_noise_over_costs_is_centred(noise: aimle.Noise, solver):
    costs = 0.5 + randn(6, 4, 5).abs()
    layer = aimle.IMLE(solver, 1.0, noise=noise, theta_noise_temperature=0.4, nb_samples=5)
    eps = aimle.sample_noise(noise, costs.shape, KEY, nb_samples=5, instance_dims=2)
    x = costs.unsqueeze(1) - 0.4 * (eps.double() - noise.mean)
    assert torch.equal(layer(costs, key=KEY), GRID(x))
    assert not torch.equal(GRID(x), GRID(costs.unsqueeze(1) - 0.4 * eps.double()))
    layer.eval()
    assert torch.equal(layer(costs), GRID(costs).unsqueeze(1))


def test_a_constant_of_the_noise_does_not_change_the_length_of_paths():
    # 0.5772 less for every cell makes detours cheap; centred noise leaves paths as short as Normal.
    costs = 0.5 + torch.rand(50, 8, 8, generator=torch.Generator().manual_seed(0))
    cells = {}
    for name, layer in {
        "centred": aimle.IMLE(GRID, noise="gumbel", theta_noise_temperature=0.3, nb_samples=10),
        "as it is": aimle.AIMLE(
            GRID, noise="gumbel", theta_noise_temperature=0.3, nb_samples=10, target=PAPER
        ),
    }.items():
        cells[name] = layer(costs, key=KEY).sum((-1, -2)).mean()
    assert cells["centred"] < cells["as it is"] - 0.3


@pytest.mark.parametrize("target", [PAPER, aimle.AdaptiveTarget.reference()])
def test_published_rules_add_the_noise_as_it_is(target: aimle.AdaptiveTarget):
    costs = 0.5 + randn(6, 4, 5).abs()
    for solver in (GRID, Paths()):
        layer = aimle.AIMLE(solver, target=target, nb_samples=5)
        eps = aimle.sample_noise("gumbel", costs.shape, KEY, nb_samples=5, instance_dims=2)
        assert torch.equal(layer(costs, key=KEY), GRID(costs.unsqueeze(1) - eps.double()))


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_callables_and_grids_agree_under_centred_noise(noise: aimle.Noise):
    costs, dy = 0.5 + randn(6, 4, 5).abs(), randn(6, 3, 4, 5, seed=2)
    for make in (
        lambda solver: aimle.IMLE(solver, 1.0, noise=noise, nb_samples=3),
        lambda solver: aimle.AIMLE(
            solver, noise=noise, nb_samples=3, target=SCALED, target_noise_temperature=0.7
        ),
    ):
        results = []
        for solver in (GRID, Paths()):
            rows = leaf(costs)
            z = make(solver)(rows, key=KEY)
            z.backward(dy)
            results.append((z.detach(), rows.grad))
        assert torch.equal(results[0][0], results[1][0])
        assert torch.equal(results[0][1], results[1][1])
        assert results[0][1].abs().sum() > 0


def test_solutions_of_one_size_take_no_centred_noise():
    layer = aimle.IMLE(aimle.TopK(2), 1.0)
    settings = with_setting(layer._settings(True), "noise_mean", 0.5)
    with pytest.raises(ValueError, match=r"not centred.*topk.*0\.5"):
        torch.ops.aimle.perturbed_map(
            randn(2, 5),
            KEY,
            None,
            None,
            None,
            *layer._state(),
            f"solver=topk:k=2 {settings}",
            1.0,
            1.0,
        )


# ---- What is clipped -----------------------------------------------------------------------------


def clipped(costs: Tensor, layer: aimle.PerturbedMap, dy: Tensor, sides: tuple[int, ...]) -> float:
    """The share of costs below zero in the solves of backward, for a fixed target."""
    samples = layer.nb_samples
    eps = aimle.sample_noise(layer.noise, costs.shape, KEY, nb_samples=samples, instance_dims=2)
    noise = layer.target_noise_temperature * (eps.double() - layer.noise.mean)
    moved = [side * layer.target.lambda_ * dy for side in sides]
    x = torch.stack([costs.unsqueeze(1) - step - noise for step in moved])
    return float((x < 0).double().mean())


@pytest.mark.parametrize("symmetric", [True, False])
def test_stats_tell_the_share_of_clipped_costs(symmetric: bool):
    costs, dy = 0.2 + randn(6, 4, 5).abs(), randn(6, 3, 4, 5, seed=2)
    layer = aimle.IMLE(GRID, 0.3, noise="gumbel", nb_samples=3, symmetric_perturbation=symmetric)
    assert layer.stats()["clipped_share"].isnan()
    rows = leaf(costs)
    layer(rows, key=KEY).backward(dy)
    share = float(layer.stats()["clipped_share"])
    assert share == clipped(costs, layer, dy, (1, -1) if symmetric else (-1,))
    assert 0.05 < share < 0.5


def test_walls_are_no_costs_and_other_structures_clip_nothing():
    costs = torch.full((1, 3, 3), 5.0)
    costs[0, 1, 1], mask = -1.0, torch.ones(3, 3, dtype=torch.bool)
    mask[0, 2] = False
    costs[0, 2, 0] = torch.inf
    layer = aimle.IMLE(GRID, 0.01, noise=None)
    rows = leaf(costs)
    layer(rows, mask=mask).sum().backward()
    assert float(layer.stats()["clipped_share"]) == 1 / 7
    assert "clipped_share" not in aimle.IMLE(aimle.TopK(2)).stats()
