"""Independent entries, and the default noise of their layers."""

import pytest
import torch

import aimle


def test_scores_above_zero_are_on(device: torch.device):
    scores = torch.tensor([[0.0, -0.0, 1e-40, -1e-40, 3.0, -3.0, torch.inf, -torch.inf]])
    z = aimle.Bernoulli()(scores.to(device))
    assert z.tolist() == [[0, 0, 1, 0, 1, 0, 1, 0]]
    mask = torch.arange(8, device=device) < 4
    assert aimle.Bernoulli()(scores.to(device), mask=mask).tolist() == [[0, 0, 1, 0, 0, 0, 0, 0]]
    assert not aimle.Bernoulli()(scores.to(device), mask=~mask & mask).any()
    assert aimle.Bernoulli()(torch.zeros(3, 0, device=device)).shape == (3, 0)


def test_layers_add_logistic_noise_unless_told_otherwise():
    layer = aimle.AIMLE(aimle.Bernoulli(), nb_samples=20_000)
    assert layer.noise == aimle.Logistic()
    assert layer.theta_noise_temperature == 1.0
    theta = torch.tensor([-2.0, -0.5, 0.0, 1.0, 3.0])
    on = layer(theta.unsqueeze(0), key=torch.tensor([1, 2])).mean(1).squeeze(0)
    p = theta.sigmoid()
    assert ((on - p).abs() <= 5 * (p * (1 - p) / 20_000).sqrt()).all()
    assert aimle.AIMLE(aimle.Bernoulli(), noise="normal").noise == aimle.Normal()
    assert aimle.AIMLE(aimle.TopK(3)).noise == aimle.Gumbel()
    assert aimle.AIMLE(aimle.GridPath()).noise == aimle.Normal()
    published = aimle.AIMLE(aimle.Bernoulli(), target=aimle.AdaptiveTarget.reference())
    assert published.noise == aimle.Gumbel()


def test_the_layer_minimises_by_turning_scores_around():
    theta, key = torch.randn(4, 6), torch.tensor([1, 2])
    down = aimle.AIMLE(aimle.Bernoulli(), sense="min").eval()
    assert torch.equal(down(theta, key=key).squeeze(1), (theta < 0).float())


def test_relaxed_samples_are_those_of_the_binary_concrete_distribution():
    theta, key = torch.randn(3, 5), torch.tensor([1, 2])
    layer = aimle.SST(aimle.Bernoulli(), nb_samples=4, temperature=0.5)
    noise = aimle.sample_noise(aimle.Logistic(), (3, 5), key, nb_samples=4)
    expected = ((theta.unsqueeze(1) + noise) / 0.5).sigmoid()
    torch.testing.assert_close(layer(theta, key=key), expected)


def test_the_diagnosis_knows_its_exact_gradient():
    torch.manual_seed(0)
    theta, b = torch.randn(1, 6), torch.rand(6)
    found = aimle.diagnose(
        aimle.Bernoulli(), theta, lambda z: (z - b).square().sum(-1), estimators=["exact", "aimle"]
    )
    assert "exact" in str(found)


def test_bad_rows_are_named():
    with pytest.raises(ValueError, match=r"row 0: expected numbers but got scores\[0, 1\]=nan"):
        aimle.solve(aimle.Bernoulli(), torch.tensor([[0.0, torch.nan]]), check=True)
    with pytest.raises(TypeError, match="takes no k"):
        aimle.Bernoulli()(torch.zeros(3), k=2)
    with pytest.raises(ValueError, match="more for n=20"):
        aimle.exact.structures(aimle.Bernoulli(), torch.zeros(20))
