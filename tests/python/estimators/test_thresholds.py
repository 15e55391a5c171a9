"""Thresholds against exact gradients, and their settings."""

import pytest
import torch
from exact_gradients import (
    STRUCTURES,
    assert_unbiased,
    cosine,
    curved,
    linear,
    perturbed_gradient,
    quadratic,
    replicate,
    scores,
)
from torch.library import opcheck

import aimle

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")

WITH_THRESHOLDS = [name for name, case in STRUCTURES.items() if case[0].has_thresholds]


@pytest.mark.parametrize(
    ("structure", "noise", "tau"),
    [
        ("argmax", "gumbel", 1.0),
        ("argmax", "logistic", 1.0),
        ("argmax", "normal", 0.5),
        ("topk", "gumbel", 1.0),
        ("topk", "gumbel", 0.5),
        ("topk", "logistic", 2.0),
        ("topk", "normal", 1.0),
        ("tree", "gumbel", 1.0),
    ],
)
def test_thresholds_are_unbiased_for_quadratic_and_linear_losses(structure, noise, tau):
    solver, _, n = STRUCTURES[structure]
    theta = scores(n)
    settings = {"noise": noise, "nb_samples": 200, "theta_noise_temperature": tau}
    for order, loss in (("trapezoid", quadratic(n)), ("first", linear(n))):
        exact = perturbed_gradient(structure, theta, noise, tau, loss)
        layer = aimle.estimator("thresholds", solver, order=order, **settings)
        assert_unbiased(replicate(layer, theta, loss), exact)


def test_thresholds_of_argmax_with_gumbel_noise_have_the_softmax_jacobian_on_average():
    theta = scores(6, seed=3).double()
    loss = linear(6)
    pi, b = torch.softmax(theta, -1), loss(torch.eye(6, dtype=torch.float64))
    layer = aimle.Thresholds(aimle.Argmax(), nb_samples=500)
    assert_unbiased(replicate(layer, theta, loss), pi * (b - pi @ b))


@pytest.mark.parametrize("structure", WITH_THRESHOLDS)
def test_thresholds_point_the_right_way_for_curved_losses(structure):
    solver, _, n = STRUCTURES[structure]
    for seed in range(3):
        theta, loss = scores(n, seed), curved(n, seed)
        exact = perturbed_gradient(structure, theta, "gumbel", 1.0, loss)
        # Biased: the limits are what the expansion of these losses to second (first) order allows.
        for order, limit in (("trapezoid", 0.9), ("first", 0.6)):
            layer = aimle.Thresholds(solver, order=order, nb_samples=200)
            assert cosine(replicate(layer, theta, loss), exact) > limit


def test_thresholds_with_masks_k_per_row_and_outputs_equal_the_plain_problem():
    torch.manual_seed(0)
    theta, d = torch.randn(4, 7), torch.randn(4, 7)
    key = torch.tensor([1, 2])

    def gradient(layer, theta, d, **call):
        theta = theta.clone().requires_grad_()
        z = layer(theta, key=key, **call)
        (z * d.reshape(len(d), *(1,) * (z.dim() - 2), -1)).sum().backward()
        return theta.grad

    plain = gradient(aimle.Thresholds(aimle.TopK(2)), theta[:, :5], d[:, :5])
    mask = torch.arange(7) < 5
    masked = gradient(aimle.Thresholds(aimle.TopK(2)), theta, d, mask=mask)
    assert torch.equal(masked[:, 5:], torch.zeros(4, 2))
    torch.testing.assert_close(masked[:, :5], plain)
    infinite = gradient(aimle.Thresholds(aimle.TopK(2)), theta.masked_fill(~mask, -torch.inf), d)
    torch.testing.assert_close(infinite, masked)

    k = torch.tensor([0, 1, 3, 7])
    ragged = gradient(aimle.Thresholds(aimle.TopK(2)), theta, d, k=k)
    assert torch.equal(ragged[[0, 3]], torch.zeros(2, 7))
    for row in (1, 2):
        alone = aimle.Thresholds(aimle.TopK(2))
        full = gradient(alone, theta, d, k=int(k[row]))
        assert torch.equal(full[row], ragged[row])
        assert full[row].sum().abs() < 1e-5

    samples = gradient(aimle.Thresholds(aimle.TopK(2), nb_samples=3), theta, d)
    mean = gradient(aimle.Thresholds(aimle.TopK(2), nb_samples=3, output="mean"), theta, d)
    torch.testing.assert_close(samples, 3 * mean)
    lowest = gradient(aimle.Thresholds(aimle.TopK(2), sense="min"), -theta, d)
    torch.testing.assert_close(lowest, -gradient(aimle.Thresholds(aimle.TopK(2)), theta, d))


def test_the_cap_of_thresholds_is_reported_and_biases():
    theta, loss = scores(5), quadratic(5)
    exact = perturbed_gradient("argmax", theta, "gumbel", 1.0, loss)
    free = aimle.Thresholds(aimle.Argmax(), nb_samples=200)
    assert all(value.isnan() for value in free.stats().values())
    gradients = replicate(free, theta, loss)
    assert free.stats()["capped_share"] == 0
    capped = aimle.Thresholds(aimle.Argmax(), nb_samples=200, max_weight=0.5)
    biased = replicate(capped, theta, loss)
    stats = capped.stats()
    assert 0 < stats["capped_share"] < 1
    assert 0 < stats["capped_mass"] < 1
    assert (biased.mean(0) - exact).norm() > 3 * (gradients.mean(0) - exact).norm()
    assert (biased.std(0) < gradients.std(0)).all()


def test_thresholds_say_to_what_they_apply():
    for solver in (aimle.GridPath(), lambda x: x):
        with pytest.raises(TypeError, match="such as Argmax, TopK, SpanningTree and Chain"):
            aimle.estimator("thresholds", solver)
    for noise in (None, aimle.SumOfGamma(5)):
        with pytest.raises(ValueError, match="density in closed form"):
            aimle.estimator("thresholds", aimle.Argmax(), noise=noise)
    with pytest.raises(ValueError, match="max_weight > 0 but got 0"):
        aimle.estimator("thresholds", aimle.Argmax(), max_weight=0)
    with pytest.raises(ValueError, match="order to be one of first, trapezoid but got 'second'"):
        aimle.estimator("thresholds", aimle.Argmax(), order="second")
    with pytest.raises(ValueError, match="temperature > 0"):
        aimle.estimator("thresholds", aimle.Argmax(), theta_noise_temperature=0)


def test_thresholds_compile_and_pass_opcheck():
    layer = aimle.Thresholds(aimle.TopK(2), nb_samples=3)
    theta, key = torch.randn(4, 5), torch.tensor([1, 2])

    def gradient(layer, theta):
        theta = theta.clone().requires_grad_()
        (layer(theta, key=key) ** 2 * torch.arange(5.0)).sum().backward()
        return theta.grad

    expected = gradient(layer, theta)
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert torch.equal(gradient(compiled, theta), expected)
    opcheck(
        torch.ops.aimle.perturbed_map.default,
        (
            theta.requires_grad_(),
            key,
            None,
            None,
            None,
            *layer._state(),
            f"solver={layer.solver.text} {layer._settings(True)}",
            *layer._temperatures(),
        ),
    )


def test_thresholds_in_eval_mode_are_noise_free_and_still_have_a_gradient():
    layer = aimle.Thresholds(aimle.TopK(2)).eval()
    theta = torch.tensor([3.0, 1.0, 0.5, -2.0], requires_grad=True)
    z = layer(theta)
    assert z.tolist() == [[1, 1, 0, 0]]
    (z * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    density = [torch.exp(-u - torch.exp(-u)) for u in torch.tensor([-2.5, -0.5, 0.5, 3.0])]
    d = torch.stack([p * delta for p, delta in zip(density, (-2, -1, 1, 2), strict=True)])
    torch.testing.assert_close(theta.grad, d - d.mean())
