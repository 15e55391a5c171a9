"""The layers: senses, the named estimators' formulas, training and evaluation, seeds and keys."""

import math

import pytest
import torch
from layer_cases import (
    OUTPUTS,
    PROBLEMS,
    adaptive,
    gradient_shape,
    leaf,
    randn,
    run,
    state_of,
)
from torch import Tensor

import aimle

# ---- Senses --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in PROBLEMS if len(PROBLEMS[name].senses) == 2])
@pytest.mark.parametrize("estimator", [aimle.AIMLE, aimle.IMLE, aimle.STE])
def test_noise_means_the_same_in_both_senses(
    name: str, estimator: type, device: torch.device, key: Tensor
):
    """Costs theta under "min" are scores -theta under "max": same z, gradient of the other sign."""
    problem = PROBLEMS[name]
    theta = problem.theta(3, device=device)
    settings = {} if estimator is aimle.STE else {"target": adaptive(1.0)}
    results = [
        run(
            estimator(problem.solver, nb_samples=3, sense=sense, **settings).to(device),
            sign * theta,
            key=key,
        )
        for sense, sign in (("min", 1), ("max", -1))
    ]
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], -results[1][1])
    assert results[0][1].count_nonzero() > 0


@pytest.mark.parametrize(
    ("name", "sense"), [(name, s) for name in PROBLEMS for s in (None, *PROBLEMS[name].senses)]
)
def test_a_gradient_step_lowers_the_loss(name: str, sense: str | None, device: torch.device):
    """The sign of the gradient: descent on <d, z> makes expensive entries rarer."""
    problem = PROBLEMS[name]
    theta = problem.theta(4, device=device)
    d = randn(4, 1, *problem.instance, device=device)
    layer = aimle.AIMLE(
        problem.solver, nb_samples=200, sense=sense, output="samples", target=adaptive(1.0)
    ).to(device)
    key = torch.tensor([5, 6], device=device)
    x = leaf(theta)
    before = (layer(x, key=key) * d).sum()
    before.backward()
    after = (layer(theta - 0.01 * x.grad, key=key) * d).sum()
    assert after < before - 1


@pytest.mark.parametrize(
    ("name", "sense"), [(name, s) for name in PROBLEMS for s in PROBLEMS[name].senses]
)
def test_blackbox_differentiation_is_its_formula(name: str, sense: str, device: torch.device):
    problem, lambda_ = PROBLEMS[name], 3.0
    theta = problem.theta(5, device=device)
    dy = randn(*theta.shape, device=device)
    z, gradient = run(aimle.DBB(problem.solver, lambda_, sense=sense).to(device), theta, dy)

    def best(x: Tensor) -> Tensor:
        return problem.solver(x if problem.solver.sense == sense else -x)

    moved = theta + lambda_ * dy if sense == "min" else theta - lambda_ * dy
    sign = 1 if sense == "min" else -1
    assert torch.equal(z, best(theta))
    torch.testing.assert_close(gradient, sign * (best(moved) - best(theta)) / lambda_)
    assert gradient.count_nonzero() > 0


@pytest.mark.parametrize("sense", ["max", "min"])
@pytest.mark.parametrize("projection", ["mean", "norm", "std", None])
def test_identity_is_its_formula(sense: str, projection: str | None, device: torch.device):
    """Straight through, then through the Jacobian of the projection."""
    theta, dy = randn(4, 7, device=device), randn(4, 7, seed=2, device=device)
    layer = aimle.Identity(aimle.TopK(3), sense=sense, projection=projection).to(device)
    z, gradient = run(layer, theta, dy)
    expected = dy if sense == "max" else -dy
    centred = theta - theta.mean(-1, keepdim=True)
    x = centred if projection == "std" else theta
    if projection in ("norm", "std"):
        unit = x / x.norm(dim=-1, keepdim=True)
        expected = expected - unit * (unit * expected).sum(-1, keepdim=True)
        expected = expected / x.norm(dim=-1, keepdim=True)
    if projection in ("mean", "std"):
        expected = expected - expected.mean(-1, keepdim=True)
    assert torch.equal(z, aimle.TopK(3)(theta if sense == "max" else -theta))
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("value", [0.0, 0.1, -7.3, 1e-3])
def test_identity_of_equal_scores_has_a_finite_gradient(
    value: float, dtype: torch.dtype, device: torch.device
):
    """As before the first step of a model whose last layer starts at zero."""
    theta = torch.full((3, 10), value, device=device, dtype=dtype)
    dy = randn(3, 10, seed=2, device=device).to(dtype)
    layer = aimle.Identity(aimle.TopK(3)).to(device)
    z, gradient = run(layer, theta, dy)
    assert torch.equal(z, aimle.TopK(3)(theta))
    tolerance = {"atol": 4 * torch.finfo(dtype).eps, "rtol": 0.0}
    torch.testing.assert_close(gradient, dy - dy.mean(-1, keepdim=True), **tolerance)
    zeros = aimle.Identity(aimle.TopK(3), projection="norm").to(device)
    _, gradient = run(zeros, torch.zeros_like(theta), dy)
    assert torch.equal(gradient, dy)


def test_identity_leaves_masked_entries_out_of_its_projection(device: torch.device):
    theta, dy = randn(2, 7, device=device), randn(2, 5, seed=2, device=device)
    mask = torch.arange(7, device=device) < 5
    padded = torch.nn.functional.pad(dy, (0, 2), value=9.0)
    layer = aimle.Identity(aimle.TopK(2)).to(device)
    theta[:, 5:] = torch.tensor([math.inf, math.nan], dtype=theta.dtype)
    z, gradient = run(layer, theta, padded, mask=mask)
    z_alone, gradient_alone = run(layer, theta[:, :5], dy)
    assert torch.equal(z[:, :5], z_alone)
    torch.testing.assert_close(gradient[:, :5], gradient_alone)
    assert gradient[:, 5:].eq(0).all()


@pytest.mark.parametrize("output", OUTPUTS)
def test_straight_through_passes_dy_on(output: str, device: torch.device, key: Tensor):
    problem = PROBLEMS["topk"]
    theta = problem.theta(2, 3, device=device)
    layer = aimle.STE(problem.solver, nb_samples=4, output=output).to(device)
    dy = randn(*gradient_shape(layer, theta), device=device)
    _, gradient = run(layer, theta, dy, key=key)
    expected = dy if output == "mean" else dy.reshape(2, 3, 4, 8).sum(2)
    torch.testing.assert_close(gradient, expected)
    assert layer.alpha is None
    assert not any(torch.isfinite(value).any() for value in layer.stats().values())


# ---- Modes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
def test_eval_mode_is_the_noise_free_solution_and_the_state_rests(name: str, device: torch.device):
    problem = PROBLEMS[name]
    theta = problem.theta(3, device=device)
    target = adaptive(0.8, scale="theta")
    layer = aimle.AIMLE(problem.solver, nb_samples=5, target=target).to(device).eval()
    before = {name: state_of(layer)[name] for name in ("alpha", "gbar", "updates")}
    z, gradient = run(layer, theta)
    assert torch.equal(z, problem.solver(theta).unsqueeze(1))
    silent = aimle.AIMLE(problem.solver, noise=None, target=target).to(device)
    assert torch.equal(gradient, run(silent, theta)[1])
    assert gradient.count_nonzero() > 0
    for name, value in before.items():
        assert torch.equal(getattr(layer, name), value)
    assert torch.equal(layer(theta), layer(theta))


def test_eval_mode_may_keep_the_noise(device: torch.device, key: Tensor):
    problem = PROBLEMS["topk"]
    theta = problem.theta(3, device=device)
    layer = aimle.AIMLE(problem.solver, nb_samples=5, noise_in_eval=True, target=adaptive()).to(
        device
    )
    trained = layer(theta, key=key)
    layer.eval()
    assert torch.equal(layer(theta, key=key), trained)
    run(layer, theta)
    assert layer.updates == 0
    assert layer.alpha == 0.5


def test_eval_mode_draws_no_key(device: torch.device):
    layer = aimle.AIMLE(aimle.TopK(3)).to(device).eval()
    theta = PROBLEMS["topk"].theta(3, device=device)
    torch.manual_seed(0)
    expected = torch.rand(3, device=device)
    torch.manual_seed(0)
    layer(theta)
    assert torch.equal(torch.rand(3, device=device), expected)


def test_seeds_generators_and_keys(device: torch.device, key: Tensor):
    problem = PROBLEMS["topk"]
    theta = problem.theta(20, device=device)
    layer = aimle.AIMLE(problem.solver).to(device)
    torch.manual_seed(1)
    first, second = layer(theta), layer(theta)
    torch.manual_seed(1)
    assert torch.equal(layer(theta), first)
    assert not torch.equal(first, second)
    assert torch.equal(layer(theta, key=key), layer(theta, key=key.clone()))
    own = aimle.AIMLE(problem.solver, generator=torch.Generator(device).manual_seed(1)).to(device)
    again = aimle.AIMLE(problem.solver, generator=torch.Generator(device).manual_seed(1)).to(device)
    torch.manual_seed(5)
    assert torch.equal(own(theta), again(theta))
    torch.manual_seed(5)
    untouched = torch.rand(2)
    torch.manual_seed(5)
    own(theta)
    assert torch.equal(torch.rand(2), untouched)
