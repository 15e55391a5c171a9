"""The relaxations: values, gradients and temperatures."""

import math

import pytest
import torch
from exact_gradients import scores

import aimle

KEY = torch.tensor([7, 11])


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def test_the_relaxations_are_what_their_papers_say():
    theta = scores(18).reshape(3, 6).double()
    eps = aimle.sample_noise("gumbel", theta.shape, KEY, nb_samples=4).double()
    x, t = theta.unsqueeze(-2) + eps, 0.7
    soft = torch.softmax(x / t, -1)
    settings = {"nb_samples": 4, "temperature": t}
    for name in ("gumbel_softmax", "sst"):
        got = aimle.estimator(name, aimle.Argmax(), **settings)(theta, key=KEY)
        torch.testing.assert_close(got, soft)
        hard = aimle.estimator(name, aimle.Argmax(), hard=True, **settings)(theta, key=KEY)
        assert torch.equal(hard, aimle.Argmax()(x))

    subset = aimle.TopK(3)
    got = aimle.SoftSub(subset, **settings)(theta, key=KEY)
    torch.testing.assert_close(got.sum(-1), torch.full((3, 4), 3.0, dtype=torch.float64))
    # Cold, it takes the k largest: what was taken in one round is not taken again in a later one.
    cold = aimle.SoftSub(subset, nb_samples=4, temperature=1e-3)(theta, key=KEY)
    torch.testing.assert_close(cold, subset(x), atol=1e-2, rtol=0)
    k = torch.tensor([1, 3, 2])
    each = aimle.SoftSub(subset, **settings)(theta, k=k, key=KEY)
    torch.testing.assert_close(each.sum(-1), k.double().unsqueeze(-1).expand(3, 4))
    torch.testing.assert_close(each[1], got[1])
    for name in ("softsub", "sst"):
        hard = aimle.estimator(name, subset, hard=True, **settings)(theta, key=KEY)
        assert torch.equal(hard, subset(x))

    draws = aimle.sample_noise("gumbel", (3, 3, 6), KEY, instance_dims=2, nb_samples=4).double()
    expected = torch.softmax((theta[:, None, None] + draws) / t, -1).amax(-2)
    torch.testing.assert_close(aimle.L2X(subset, **settings)(theta, key=KEY), expected)


@pytest.mark.parametrize("name", ["gumbel_softmax", "softsub", "sst", "l2x"])
def test_the_gradients_of_relaxations_are_their_own(name: str):
    solver = aimle.Argmax() if name == "gumbel_softmax" else aimle.TopK(2)
    layer = aimle.estimator(name, solver, temperature=0.8, nb_samples=2)
    theta = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: layer(x, key=KEY), (theta,))


def test_temperatures_anneal():
    assert aimle.anneal(0) == 1.0
    assert aimle.anneal(999) == 1.0
    assert aimle.anneal(1000) == pytest.approx(math.exp(-0.03))
    assert aimle.anneal(23_000) == pytest.approx(math.exp(-0.69))
    assert aimle.anneal(24_000) == 0.5
    layer = aimle.GumbelSoftmax(aimle.Argmax())
    layer.set_temperature(aimle.anneal(1000))
    assert layer.state_dict()["temperature"] == pytest.approx(math.exp(-0.03))


@pytest.mark.parametrize("name", ["gumbel_softmax", "gumbel_rao", "sst", "softsub", "l2x"])
def test_the_temperature_is_assigned_as_in_other_layers(name: str):
    solver = aimle.TopK(2) if name in ("softsub", "l2x") else aimle.Argmax()
    layer, same = aimle.estimator(name, solver), aimle.estimator(name, solver, temperature=0.5)
    buffer = layer.temperature
    layer.temperature = 0.5
    assert layer.temperature is buffer  # compiled code and CUDA graphs see the change
    assert torch.equal(layer(scores(6), key=KEY), same(scores(6), key=KEY))
    with pytest.raises(ValueError, match="temperature > 0 but got -1"):
        layer.temperature = -1
