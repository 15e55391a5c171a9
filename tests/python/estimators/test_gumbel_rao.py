"""Gumbel-Rao: the noise given the choice, and the average over it."""

import pytest
import torch
from exact_gradients import assert_unbiased, curved, quadratic, replicate, scores

import aimle

KEY = torch.tensor([7, 11])


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def straight_through(temperature: float, nb_samples: int) -> aimle.GumbelSoftmax:
    return aimle.GumbelSoftmax(
        aimle.Argmax(), temperature=temperature, hard=True, nb_samples=nb_samples
    )


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_its_mean_is_that_of_the_straight_through_gradient(temperature: float):
    """For any loss; with a lower variance, from the same samples."""
    theta, loss = scores(6), curved(6)
    one = straight_through(temperature, 100)
    many = straight_through(temperature, 400_000)
    rao = aimle.GumbelRao(aimle.Argmax(), temperature=temperature, nb_samples=100)
    expected = replicate(many, theta, loss, 1)[0]
    found = replicate(rao, theta, loss)
    assert_unbiased(found, expected)
    assert found.var(0).sum() < 0.8 * replicate(one, theta, loss).var(0).sum()


def test_the_noise_is_that_of_draws_with_the_same_choice():
    """The gradients of samples of each entry, with one draw given z, against those of any noise."""
    theta = scores(4).expand(100_000, 4)
    d = torch.tensor([1.0, -2.0, 0.5, 3.0])

    def gradients(layer: torch.nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
        own = theta.clone().requires_grad_()
        z = layer(own).squeeze(1)
        (gradient,) = torch.autograd.grad((z * d).sum(), own)
        return z.detach().argmax(-1), gradient

    chosen, plain = gradients(straight_through(0.7, 1))
    again, given = gradients(aimle.GumbelRao(aimle.Argmax(), temperature=0.7, draws=1))
    for entry in range(4):
        one, other = plain[chosen == entry], given[again == entry]
        error = (one.var(0) / len(one) + other.var(0) / len(other)).sqrt()
        assert ((one.mean(0) - other.mean(0)).abs() < 5 * error).all(), entry
        # Not only the mean: the spread of single draws is the same.
        torch.testing.assert_close(one.std(0), other.std(0), rtol=0.1, atol=1e-3)


def test_z_is_that_of_gumbel_softmax_and_more_draws_have_a_lower_variance():
    theta, loss = scores(5), quadratic(5)
    settings = {"nb_samples": 7, "temperature": 0.6}
    hard = aimle.GumbelSoftmax(aimle.Argmax(), hard=True, **settings)(theta, key=KEY)
    spreads = []
    for draws in (1, 64):
        layer = aimle.GumbelRao(aimle.Argmax(), draws=draws, **settings)
        assert torch.equal(layer(theta, key=KEY), hard)
        spreads.append(replicate(layer, theta, loss).var(0).sum())
    assert spreads[1] < spreads[0]


def test_extreme_scores_have_finite_gradients():
    theta = torch.tensor([[1e4, 0.0, -1e4], [0.0, 0.0, 90.0]], requires_grad=True)
    z = aimle.GumbelRao(aimle.Argmax(), nb_samples=1000, temperature=0.1)(theta, key=KEY)
    (z * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert theta.grad.isfinite().all()


def test_the_average_of_thresholds_given_the_choice_is_reinmax():
    """The other estimator that can be averaged in this way: its average has a closed form."""
    theta = scores(4).expand(200_000, 4)
    d = torch.tensor([1.0, -2.0, 0.5, 3.0])

    def gradients(layer: torch.nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
        own = theta.clone().requires_grad_()
        z = layer(own).squeeze(1)
        (gradient,) = torch.autograd.grad((z * d).sum(), own)
        return z.detach().argmax(-1), gradient

    chosen, single = gradients(aimle.Thresholds(aimle.Argmax(), max_weight=1e6))
    again, average = gradients(aimle.ReinMax(aimle.Argmax()))
    for entry in range(4):
        rows = single[chosen == entry]
        expected = average[again == entry][0]
        error = rows.std(0) / len(rows) ** 0.5
        assert ((rows.mean(0) - expected).abs() < 5 * error + 1e-6).all(), entry
