"""Thresholds against exact gradients, and their settings."""

import math

import pytest
import torch
from exact_gradients import (
    STRUCTURES,
    assert_unbiased,
    chain_probabilities,
    chains,
    cosine,
    curved,
    exact_gradient,
    flip_probabilities,
    flips,
    gradient_by_noise,
    linear,
    perturbed_gradient,
    quadratic,
    replicate,
    scores,
)
from layer_cases import PROBLEMS, randn, run
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


@pytest.mark.parametrize("tau", [1.0, 0.6])
def test_thresholds_of_chains_are_unbiased(tau):
    theta = scores(8)
    settings = {"nb_samples": 200, "temperature": tau}
    for order, loss in (("trapezoid", quadratic(8)), ("first", linear(8))):
        exact = exact_gradient(theta, chains(2, 2), lambda at: chain_probabilities(at, tau), loss)
        layer = aimle.Thresholds(aimle.Chain(), order=order, **settings)
        assert_unbiased(replicate(layer, theta, loss), exact)


@pytest.mark.parametrize(("noise", "tau"), [("logistic", 1.0), ("gumbel", 0.7), ("normal", 1.0)])
def test_thresholds_of_bernoulli_are_unbiased(noise, tau):
    theta = scores(5)

    def gradients(order, loss):
        settings = {"nb_samples": 200, "temperature": tau, "noise": noise, "order": order}
        return replicate(aimle.Thresholds(aimle.Bernoulli(), **settings), theta, loss)

    def exact(loss):
        return exact_gradient(theta, flips(5), lambda at: flip_probabilities(at, noise, tau), loss)

    assert_unbiased(gradients("trapezoid", quadratic(5)), exact(quadratic(5)))
    # The thresholds do not depend on the noise, so a linear loss has no variance.
    found = gradients("first", linear(5))
    torch.testing.assert_close(found, exact(linear(5)).expand_as(found), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("solver", "instance"),
    [
        (aimle.Chain(), (3, 3, 3)),
        (aimle.LatticePath(), (3, 4)),
        (aimle.LatticePath("straight"), (3, 3)),
        (aimle.LatticePath("diagonal"), (4, 3)),
        (aimle.LatticeMoves(), (3, 3, 3)),
        (aimle.LatticeMoves("straight"), (3, 3, 3)),
        (aimle.LatticeMoves("diagonal"), (4, 2, 3)),
    ],
    ids=str,
)
def test_thresholds_of_paths_agree_with_the_score_function_of_the_noise(solver, instance):
    noise, tau = aimle.Normal(), 0.8
    n = math.prod(instance)
    theta = 0.5 * scores(n).reshape(instance)
    for order, loss in (("trapezoid", quadratic(n)), ("first", linear(n))):
        expected, error = gradient_by_noise(solver, theta, noise, tau, loss)
        layer = aimle.Thresholds(
            solver, order=order, noise=noise, temperature=tau, nb_samples=100, output="samples"
        )
        rows = theta.expand(300, *instance).clone().requires_grad_()
        loss(layer(rows, key=torch.tensor([7, 11])).flatten(2)).mean(-1).sum().backward()
        found = rows.grad.flatten(1).double()
        errors = (error**2 + found.var(0) / len(found)).sqrt()
        deviation = (found.mean(0) - expected).abs()
        assert (error < 0.1 * expected.norm()).all()
        assert (deviation <= 5 * errors).all(), f"{deviation / errors} standard errors"


def test_thresholds_of_a_shorter_chain_are_those_of_the_chain_alone():
    torch.manual_seed(0)
    theta, d = torch.randn(5, 4, 3, 3), torch.randn(5, 1, 4, 3, 3)
    layer, key = aimle.Thresholds(aimle.Chain()).eval(), torch.tensor([1, 2])
    mask = aimle.chain_mask(torch.tensor([3] * 5), 5)

    def gradient(theta, d, **call):
        theta = theta.clone().requires_grad_()
        layer(theta, key=key, **call).backward(d)
        return theta.grad

    padded, alone = gradient(theta, d, mask=mask), gradient(theta[:, :2], d[:, :, :2])
    assert torch.equal(padded[:, :2], alone)
    assert not padded[:, 2:].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    "name", ["bernoulli", "chain", "lattice", "lattice of moves", "tree", "topk"]
)
def test_thresholds_do_not_depend_on_threads_batches_or_the_output(name, dtype):
    problem = PROBLEMS[name]
    theta = problem.theta(67, dtype=dtype)
    mask = torch.rand(67, *problem.instance, generator=torch.Generator().manual_seed(3)) < 0.93
    _, status = problem.solver.solve_rows(theta, mask, check=0)
    mask |= (status != 0).reshape(-1, *[1] * len(problem.instance))
    key = torch.tensor([5, 6])
    layer = aimle.Thresholds(problem.solver, nb_samples=7)
    d = randn(67, 1, *problem.instance, dtype=dtype)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        z, expected = run(layer, theta, d.expand(-1, 7, *problem.instance), key=key, mask=mask)
        torch.set_num_threads(3)
        again = run(layer, theta, d.expand(-1, 7, *problem.instance), key=key, mask=mask)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(again[0], z)
    assert torch.equal(again[1], expected)
    few = run(layer, theta[:5], d[:5].expand(-1, 7, *problem.instance), key=key, mask=mask[:5])
    assert torch.equal(few[1], expected[:5])
    mean = aimle.Thresholds(problem.solver, nb_samples=7, output="mean")
    _, of_mean = run(mean, theta, d[:, 0], key=key, mask=mask)
    torch.testing.assert_close(7 * of_mean, expected)


@pytest.mark.parametrize("name", ["bernoulli", "chain", "lattice", "lattice of moves"])
def test_the_gradient_of_a_row_without_a_solution_is_nan(name):
    problem = PROBLEMS[name]
    theta = problem.theta(4)
    theta[2].flatten()[1] = torch.nan
    _, gradient = run(aimle.Thresholds(problem.solver, nb_samples=2), theta)
    assert gradient.flatten(1).isnan().all(1).tolist() == [False, False, True, False]
    assert gradient[[0, 1, 3]].isfinite().all()


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
