"""The layers: samples, shapes, gradients, the chain rule, statistics."""

import math
from itertools import product

import pytest
import torch
from layer_cases import (
    NOISES,
    OUTPUTS,
    PROBLEMS,
    adaptive,
    exact_mean,
    gradient_shape,
    leaf,
    plain,
    randn,
    run,
)
from torch import Tensor

import aimle

# ---- z and its gradient --------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("noise", NOISES)
def test_every_mode_equals_the_method_as_written(
    name: str, noise: str, device: torch.device, key: Tensor
):
    problem = PROBLEMS[name]
    theta = problem.theta(3, device=device)
    changed = 0
    for difference, output, sense in product(("central", "forward"), OUTPUTS, problem.senses):
        layer = aimle.AIMLE(
            problem.solver,
            noise=NOISES[noise],
            nb_samples=4,
            symmetric_perturbation=difference == "central",
            output=output,
            sense=sense,
            target=adaptive(0.8),
        ).to(device)
        dy = randn(*gradient_shape(layer, theta), device=device)
        expected = plain(layer, theta, dy, key)
        z, gradient = run(layer, theta, dy, key=key)
        assert torch.equal(z, expected.z)
        torch.testing.assert_close(gradient, expected.gradient, rtol=1e-12, atol=0)
        changed += gradient.count_nonzero().item()
    assert changed > 0


@pytest.mark.parametrize("scope", ["example", "sample", "batch"])
@pytest.mark.parametrize("scale", ["theta", "noise"])
@pytest.mark.parametrize("output", OUTPUTS)
def test_scopes_and_scales(scope: str, scale: str, output: str, device: torch.device, key: Tensor):
    problem = PROBLEMS["topk"]
    theta = problem.theta(2, 3, device=device)
    layer = aimle.AIMLE(
        problem.solver,
        nb_samples=5,
        theta_noise_temperature=0.5,
        target_noise_temperature=0.75,
        output=output,
        target=adaptive(0.7, scope=scope, scale=scale),
    ).to(device)
    dy = randn(*gradient_shape(layer, theta), device=device)
    expected = plain(layer, theta, dy, key)
    z, gradient = run(layer, theta, dy, key=key)
    assert torch.equal(z, expected.z)
    torch.testing.assert_close(gradient, expected.gradient, rtol=1e-12, atol=0)


@pytest.mark.parametrize("batch", [(), (3,), (2, 3), (2, 1, 3)])
@pytest.mark.parametrize("name", ["topk", "grid"])
def test_the_instances_shape_is_kept_behind_any_batch(
    name: str, batch: tuple[int, ...], device: torch.device, key: Tensor
):
    problem = PROBLEMS[name]
    theta = problem.theta(*batch, device=device)
    rows = theta.reshape(-1, *problem.instance)
    results = {}
    for output in OUTPUTS:
        layer = aimle.AIMLE(problem.solver, nb_samples=3, output=output, target=adaptive())
        z, gradient = run(layer.to(device), theta, key=key)
        assert z.shape == gradient_shape(layer, theta)
        assert gradient.shape == theta.shape
        results[output] = z
    assert torch.equal(results["flat"], results["samples"].reshape(results["flat"].shape))
    assert torch.equal(results["mean"], exact_mean(results["samples"], len(batch)))
    # Batch dimensions are one batch: instances are numbered in row-major order.
    alone = aimle.AIMLE(problem.solver, nb_samples=3).to(device)(rows, key=key)
    assert torch.equal(results["samples"].reshape(alone.shape), alone)


def test_rows_of_codes_are_instances(device: torch.device):
    z = aimle.AIMLE(aimle.TopK(10), nb_samples=2).to(device)(torch.randn(5, 20, 20, device=device))
    assert z.shape == (5, 20, 2, 20)
    assert z.sum(-1).eq(10).all()


@pytest.mark.parametrize("scope", ["example", "sample"])
def test_an_example_does_not_see_the_rest_of_its_batch(
    scope: str, device: torch.device, key: Tensor
):
    problem = PROBLEMS["topk"]
    theta, dy = problem.theta(4, device=device), randn(4, 3, 8, device=device)

    def gradient(theta: Tensor, dy: Tensor) -> Tensor:
        layer = aimle.AIMLE(problem.solver, nb_samples=3, target=adaptive(scope=scope))
        return run(layer.to(device), theta, dy, key=key)[1]

    others_theta, others_dy = theta * 1e3, dy * 1e6
    others_theta[1], others_dy[1] = theta[1], dy[1]
    others_dy[0] = math.nan
    assert torch.equal(gradient(theta, dy)[1], gradient(others_theta, others_dy)[1])
    assert torch.equal(gradient(theta, dy)[:2], gradient(theta[:2], dy[:2]))


def test_the_number_of_threads_does_not_show(device: torch.device, key: Tensor):
    problem = PROBLEMS["topk"]
    theta = problem.theta(301, dtype=torch.float32, device=device)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            layer = aimle.AIMLE(problem.solver, nb_samples=40, target=adaptive()).to(device)
            results.append((*run(layer, theta, key=key), *layer.stats().values()))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


# ---- The chain rule ------------------------------------------------------------------------------


def test_the_mean_of_losses_gives_the_papers_mean(device: torch.device, key: Tensor):
    """loss.mean() over samples: Algorithm 1's mean of differences, each under its own d."""
    problem, target = PROBLEMS["topk"], randn(8)
    theta = leaf(problem.theta(1, device=device))
    layer = aimle.AIMLE(problem.solver, nb_samples=16, target=adaptive()).to(device)
    z = layer(theta, key=key)
    (z - target.to(device)).square().sum(-1).mean().backward()
    d = 2 * (z.detach() - target.to(device))
    algorithm_1 = plain(layer, theta.detach(), d, key, alpha=0.5)
    torch.testing.assert_close(theta.grad, algorithm_1.gradient / 16, rtol=1e-12, atol=0)


def test_adaptive_gradients_are_linear_in_dy(device: torch.device, key: Tensor):
    problem = PROBLEMS["tree"]
    theta, dy = problem.theta(3, device=device), randn(3, 4, 10, device=device)
    gradients = []
    for factor in (1.0, 2.0**-20, 2.0**30):
        layer = aimle.AIMLE(problem.solver, nb_samples=4, target=adaptive()).to(device)
        gradients.append(run(layer, theta, factor * dy, key=key)[1] / factor)
    assert gradients[0].count_nonzero() > 0
    assert torch.equal(gradients[0], gradients[1])
    assert torch.equal(gradients[0], gradients[2])


def test_a_fixed_lambda_is_in_units_of_the_dy_that_arrives(device: torch.device, key: Tensor):
    """A loss scaler changes the step: dy c with lambda is dy with lambda c, times c."""
    problem = PROBLEMS["topk"]
    theta, dy = problem.theta(3, device=device), randn(3, 4, 8, device=device)

    def gradient(lambda_: float, dy: Tensor) -> Tensor:
        layer = aimle.IMLE(problem.solver, nb_samples=4, target=aimle.FixedTarget(lambda_))
        return run(layer.to(device), theta, dy, key=key)[1]

    assert torch.equal(gradient(1.0, 4 * dy), 4 * gradient(4.0, dy))
    assert not torch.equal(gradient(1.0, 4 * dy), 4 * gradient(1.0, dy))


def test_a_fixed_lambda_loses_its_direction_when_a_sum_becomes_a_mean(device: torch.device):
    """The pitfall of the documentation, with its numbers: lambda d shrinks by S."""
    samples, n = 1000, 10
    theta, b = 0.5 * randn(1, n, device=device), randn(n, seed=2, device=device).abs()
    p = theta[0].softmax(0)
    exact = -2 * p * (b - p @ b)
    cosines = {}
    for reduction in (torch.sum, torch.mean):
        # The mean over seeds of the cosine of a single backward pass.
        values = []
        for seed in range(20):
            layer = aimle.AIMLE(
                aimle.Argmax(), nb_samples=samples, target=aimle.FixedTarget(1.0)
            ).to(device)
            x = leaf(theta)
            z = layer(x, key=torch.tensor([seed, 0], device=device))
            reduction((z - b).square().sum(-1)).backward()
            values.append(torch.nn.functional.cosine_similarity(x.grad[0], exact, dim=0))
        cosines[reduction] = torch.stack(values).nan_to_num().mean().item()
    assert cosines[torch.sum] > 0.85
    assert cosines[torch.mean] < 0.5


def test_the_mean_output_steps_along_one_d(device: torch.device, key: Tensor):
    problem = PROBLEMS["topk"]
    theta, dy = problem.theta(2, device=device), randn(2, 8, device=device)
    samples = aimle.AIMLE(problem.solver, nb_samples=6, target=adaptive()).to(device)
    mean = aimle.AIMLE(problem.solver, nb_samples=6, target=adaptive(), output="mean").to(device)
    z, gradient = run(mean, theta, dy, key=key)
    z_each, summed = run(samples, theta, dy[:, None].expand(-1, 6, -1), key=key)
    assert torch.equal(z, exact_mean(z_each, 1))
    torch.testing.assert_close(gradient, summed / 6, rtol=1e-12, atol=0)


# ---- Statistics ----------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["example", "sample", "batch"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_stats_are_what_the_pass_saw(name: str, scope: str, device: torch.device, key: Tensor):
    problem = PROBLEMS[name]
    theta = problem.theta(6, device=device)
    layer = aimle.AIMLE(problem.solver, nb_samples=3, target=adaptive(0.5, scope=scope)).to(device)
    names = {"lambda_mean", "lambda_min", "lambda_max", "count", "zero_share", "changed_share"}
    if problem.solver.has_costs:
        names.add("clipped_share")
    watched = {"idle_updates", "updates_at_bound"}
    assert set(layer.stats()) == names | watched | {"alpha", "gbar", "updates"}
    assert all(layer.stats()[name].isnan() for name in names)
    dy = randn(6, 3, *problem.instance, device=device)
    expected = plain(layer, theta, dy, key)
    run(layer, theta, dy, key=key)
    stats = {name: value.item() for name, value in layer.stats().items()}
    per_example = expected.lambda_.mean(1)
    assert stats["lambda_mean"] == pytest.approx(per_example.mean().item(), rel=1e-12)
    assert stats["lambda_min"] == pytest.approx(per_example.min().item(), rel=1e-12)
    assert stats["lambda_max"] == pytest.approx(per_example.max().item(), rel=1e-12)
    assert stats["count"] == pytest.approx(expected.count, rel=1e-12)
    assert stats["zero_share"] == pytest.approx(expected.zero_share, rel=1e-12)
    assert stats["changed_share"] == pytest.approx(expected.changed_share, rel=1e-12)
    assert stats["gbar"] == pytest.approx(0.9 + 0.1 * expected.count, rel=1e-12)
    factor = 1.02 if stats["gbar"] <= 1 else 1 / 1.02
    assert stats["alpha"] == pytest.approx(0.5 * factor, rel=1e-12)
    assert stats["updates"] == 1


def test_stats_are_a_copy(device: torch.device):
    layer = aimle.AIMLE(aimle.TopK(3), target=adaptive()).to(device)
    theta = PROBLEMS["topk"].theta(4, device=device)
    run(layer, theta)
    first = layer.stats()
    kept = {name: value.clone() for name, value in first.items()}
    run(layer, 2 * theta)
    assert all(torch.equal(first[name], value) for name, value in kept.items())
    assert layer.stats()["lambda_mean"] != kept["lambda_mean"]


def test_only_samples_with_a_gradient_count(device: torch.device, key: Tensor):
    problem = PROBLEMS["topk"]
    theta, dy = problem.theta(6, device=device), randn(6, 3, 8, device=device)
    alone = aimle.AIMLE(problem.solver, nb_samples=3, target=adaptive()).to(device)
    run(alone, theta[:2], dy[:2], key=key)
    layer = aimle.AIMLE(problem.solver, nb_samples=3, target=adaptive()).to(device)
    dy[2:4], dy[4:] = 0.0, math.nan
    run(layer, theta, dy, key=key)
    for name in ("lambda_mean", "lambda_min", "lambda_max", "count", "changed_share", "gbar"):
        assert layer.stats()[name] == alone.stats()[name], name
