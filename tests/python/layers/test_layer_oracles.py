"""Layers compared with results in closed form."""

import math

import pytest
import torch
from layer_cases import (
    PROBLEMS,
    Disguised,
    Problem,
    assert_same_state,
    leaf,
    randn,
    run,
    state_of,
)
from torch import Tensor
from torch.nn.functional import cosine_similarity

import aimle

# ---- The controller ------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["samples", "mean"])
def test_without_flips_gbar_decays_and_alpha_climbs(output: str, device: torch.device):
    """All of 6 out of 6 never changes: gbar_t = 0.9^t, alpha_t = t eta."""
    target = aimle.AdaptiveTarget.paper()
    layer = aimle.AIMLE(aimle.TopK(6), nb_samples=2, output=output, target=target).to(device)
    theta, key = randn(3, 6, device=device), torch.tensor([1, 2], device=device)
    for t in range(1, 301):
        z, gradient = run(layer, theta, key=key)
        assert z.eq(1).all()
        assert gradient.eq(0).all()
        assert abs(layer.gbar.item() - 0.9**t) < 1e-12
        assert abs(layer.alpha.item() - t * 1e-3) < 1e-12
        assert layer.updates.item() == t


COLD = {
    "argmax of 10": Problem(aimle.Argmax(), (10,)),
    "argmax of 50": Problem(aimle.Argmax(), (50,)),
    "top 5 of 20": Problem(aimle.TopK(5), (20,)),
    "trees of 6": Problem(aimle.SpanningTree(6), (15,)),
}


def gbars(problem: Problem, theta: Tensor, target: aimle.AdaptiveTarget, passes: int) -> Tensor:
    """gbar after every backward pass of a quadratic loss."""
    layer = aimle.AIMLE(problem.solver, target=target).to(theta.device)
    b = randn(*problem.instance, seed=7, device=theta.device).abs()
    torch.manual_seed(0)
    history = []
    for _ in range(passes):
        x = leaf(theta)
        (layer(x) - b).square().sum().backward()
        history.append(layer.gbar.clone())
    return torch.stack(history).cpu()


@pytest.mark.parametrize("name", COLD)
@pytest.mark.parametrize("zero", [False, True])
def test_the_default_steps_at_once(name: str, zero: bool, device: torch.device):
    """The first pass changes solutions, also at theta = 0; the paper's rule needs hundreds."""
    problem = COLD[name]
    theta = problem.theta(32, device=device) * (not zero)
    assert gbars(problem, theta, aimle.AdaptiveTarget(), 1)[0] >= 1
    papers = gbars(problem, theta, aimle.AdaptiveTarget.paper(), 100)
    assert papers.max() < 1


@pytest.mark.parametrize("name", COLD)
@pytest.mark.parametrize("zero", [False, True])
def test_gbar_settles_at_half_of_the_reach(name: str, zero: bool, device: torch.device):
    problem = COLD[name]
    theta = problem.theta(128, device=device) * (not zero)
    layer = aimle.AIMLE(problem.solver).to(device)
    b = randn(*problem.instance, seed=7, device=device).abs()
    torch.manual_seed(0)
    history = []
    for _ in range(400):
        (layer(leaf(theta)) - b).square().sum().backward()
        history.append((layer.gbar / layer.reach).item())
    assert abs(torch.tensor(history[300:]).mean().item() - 0.5) < 0.05
    assert layer.stats()["updates_at_bound"] == 0


def test_more_samples_want_fewer_changes(device: torch.device):
    problem = COLD["top 5 of 20"]
    theta = problem.theta(128, device=device)
    layer = aimle.AIMLE(problem.solver, nb_samples=9).to(device)
    b = randn(*problem.instance, seed=7, device=device).abs()
    torch.manual_seed(0)
    for _ in range(400):
        (layer(leaf(theta)) - b).square().sum().backward()
    assert (layer.gbar / layer.reach).item() == pytest.approx(0.5 / 3, rel=0.15)


@pytest.mark.parametrize(
    ("solver", "settings", "factor", "limit"),
    [
        (aimle.TopK(6), {"scale": "theta"}, 1.1, 1000.0),  # never a change
        (aimle.TopK(3), {"target_norm": 0.0}, 1 / 1.1, 1.0),  # any change is too much
    ],
)
def test_the_multiplicative_rule_and_its_range(
    solver: aimle.TopK, settings: dict, factor: float, limit: float, device: torch.device
):
    given = {"target_norm": 1.0, "factor": 1.1, "alpha_range": (1.0, 1000.0), **settings}
    layer = aimle.AIMLE(solver, target=aimle.AdaptiveTarget(100.0, **given)).to(device)
    for t in range(1, 61):
        run(layer, randn(3, 6, device=device))
        expected = min(max(100.0 * factor**t, 1.0), 1000.0)
        assert layer.alpha.item() == pytest.approx(expected, rel=1e-9)
    assert layer.alpha == limit


def test_rows_without_a_choice_leave_the_state_alone(device: torch.device):
    layer = aimle.AIMLE(aimle.TopK(6)).to(device)
    _, gradient = run(layer, randn(3, 6, device=device))
    assert gradient.eq(0).all()
    assert layer.updates == 0


@pytest.mark.parametrize("shift", [0.0, 10.0])
def test_what_no_solution_can_see_changes_nothing(shift: float, device: torch.device, key: Tensor):
    """A number added to all scores, or to the gradient of all entries."""
    layer = aimle.AIMLE(aimle.TopK(5), nb_samples=4).to(device)
    theta, dy = randn(8, 20, device=device), randn(8, 4, 20, device=device)
    _, expected = run(aimle.AIMLE(aimle.TopK(5), nb_samples=4).to(device), theta, dy, key=key)
    _, shifted = run(layer, theta + shift, dy - 3 * shift, key=key)
    torch.testing.assert_close(shifted, expected)


def test_zero_theta_is_the_papers_dead_zone(device: torch.device):
    """lambda = alpha ||theta|| / ||d|| = 0: no gradient, and alpha winds up as without flips."""
    layer = aimle.AIMLE(aimle.TopK(2), target=aimle.AdaptiveTarget.paper()).to(device)
    for t in range(1, 21):
        _, gradient = run(layer, torch.zeros(3, 6, device=device, dtype=torch.float64))
        assert gradient.eq(0).all()
        assert layer.stats()["lambda_max"] == 0
        assert layer.alpha.item() == pytest.approx(t * 1e-3)


# ---- The step ------------------------------------------------------------------------------------


def steps_and_divisors(target: aimle.AdaptiveTarget, samples: int, key: Tensor) -> Tensor:
    """lambda stepped with / lambda divided by, per example, as a solver and a user see them."""
    solver = Disguised(aimle.TopK(3))
    layer = aimle.AIMLE(solver, nb_samples=samples, target=target).to(key.device)
    theta, dy = randn(5, 8, device=key.device), randn(5, samples, 8, seed=2, device=key.device)
    _, gradient = run(layer, theta, dy, key=key)
    _, left, right = (x.reshape(5, samples, 8) for x in solver.seen)
    stepped = ((left - right) / (2 * dy)).flatten(1).median(1).values
    change = (solver.solver(left) - solver.solver(right)).sum(1)
    divided = (change / (2 * gradient)).nanmedian(1).values
    return stepped / divided


@pytest.mark.parametrize("samples", [1, 4, 16, 64])
def test_lambda_to_step_is_lambda_to_divide(samples: int, device: torch.device, key: Tensor):
    ratio = steps_and_divisors(aimle.AdaptiveTarget.paper(initial_alpha=4.0), samples, key)
    torch.testing.assert_close(ratio, torch.ones_like(ratio), rtol=1e-9, atol=0)
    authors = steps_and_divisors(aimle.AdaptiveTarget.reference(initial_alpha=4.0), samples, key)
    torch.testing.assert_close(authors, ratio * math.sqrt(samples), rtol=1e-9, atol=0)


def test_forward_aimle_at_a_fixed_lambda_is_imle(device: torch.device, key: Tensor):
    """[MAP(theta + eps) - MAP(theta - lambda d + eps)] / lambda, over many random cases."""
    generator = torch.Generator().manual_seed(3)

    def draw(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=generator))

    central_differs = False
    for case in range(64):
        n = draw(2, 100)
        k, lambda_ = draw(1, n - 1), 1e4 * torch.rand((), generator=generator).item()
        target = aimle.FixedTarget(lambda_)
        theta = draw(1, 1000) * randn(2, n, seed=case, device=device)
        dy = randn(2, 3, n, seed=case + 100, device=device)
        noise = aimle.sample_noise("gumbel", theta.shape, key, nb_samples=3).double()
        z = aimle.TopK(k)(theta[:, None] + noise)
        moved = aimle.TopK(k)(theta[:, None] - lambda_ * dy + noise)
        expected = (z - moved).sum(1) / lambda_
        layers = [
            aimle.AIMLE(
                aimle.TopK(k), nb_samples=3, symmetric_perturbation=symmetric, target=target
            ).to(device)
            for symmetric in (False, True)
        ]
        layers.append(aimle.IMLE(aimle.TopK(k), nb_samples=3, target=target).to(device))
        forward, central, imle = (run(layer, theta, dy, key=key)[1] for layer in layers)
        assert torch.equal(forward, imle)
        torch.testing.assert_close(forward, expected, rtol=1e-14, atol=0)
        central_differs |= not torch.equal(forward, central)
    assert central_differs


@pytest.mark.parametrize("name", PROBLEMS)
def test_samples_without_noise_are_equal(name: str, device: torch.device):
    """S > 1 of one noise value: equal rows, and S times the gradient of one."""
    problem = PROBLEMS[name]
    theta, d = problem.theta(3, device=device), randn(3, 1, *problem.instance, device=device)
    target = aimle.AdaptiveTarget.paper(initial_alpha=1.0)
    results = []
    for samples in (1, 4):
        layer = aimle.AIMLE(problem.solver, noise=None, nb_samples=samples, target=target)
        dy = d.expand(-1, samples, *problem.instance)
        results.append(run(layer.to(device), theta, dy))
    assert torch.equal(results[1][0], results[0][0].expand_as(results[1][0]))
    assert torch.equal(results[1][1], 4 * results[0][1])
    assert results[0][1].count_nonzero() > 0


# ---- Distributions -------------------------------------------------------------------------------


def test_gumbel_and_argmax_sample_a_softmax(device: torch.device, key: Tensor):
    samples = 40_000
    theta = randn(3, 7, device=device)
    layer = aimle.AIMLE(aimle.Argmax(), nb_samples=samples, output="mean").to(device)
    frequency, p = layer(theta, key=key), theta.softmax(-1)
    assert torch.all((frequency - p).abs() < 5 * (p * (1 - p) / samples).sqrt())


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("adaptive", [True, False])
def test_the_gradient_approaches_the_exact_one(
    symmetric: bool, adaptive: bool, device: torch.device, key: Tensor
):
    """f = ||z - b||^2 of a one-hot z: d E f / d theta_j = -2 p_j (b_j - sum_i p_i b_i)."""
    samples, n = 400_000, 6
    theta, b = randn(1, n, device=device), randn(n, seed=2, device=device).abs()
    p = theta[0].softmax(0)
    exact = -2 * p * (b - p @ b)
    target = aimle.AdaptiveTarget.paper(initial_alpha=0.05) if adaptive else aimle.FixedTarget(0.05)
    layer = aimle.AIMLE(
        aimle.Argmax(), nb_samples=samples, symmetric_perturbation=symmetric, target=target
    ).to(device)
    x = leaf(theta)
    (layer(x, key=key) - b).square().sum(-1).sum().backward()
    estimate = x.grad[0] / samples
    assert cosine_similarity(estimate, exact, dim=0) > 0.99
    # The step away from z meets the 2z in d in full, one towards it not at all.
    length = 1 if symmetric else 2
    assert (estimate - length * exact).norm() < 0.1 * length * exact.norm()


# ---- Bad gradients -------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [aimle.AdaptiveTarget.paper(0.5), aimle.FixedTarget(2.0)])
@pytest.mark.parametrize("output", ["samples", "mean"])
def test_a_zero_dy_gives_zero_and_leaves_the_state_alone(target, output: str, device: torch.device):
    layer = aimle.AIMLE(aimle.TopK(3), nb_samples=4, target=target, output=output).to(device)
    theta = randn(3, 8, device=device)
    run(layer, theta)
    before = state_of(layer)
    _, gradient = run(layer, theta, torch.zeros_like(layer(theta)))
    assert gradient.eq(0).all()
    assert_same_state(layer, before)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("scope", ["example", "sample", "batch"])
@pytest.mark.parametrize("symmetric", [True, False])
def test_a_nan_in_dy_reaches_its_gradient_and_leaves_the_state_alone(
    value: float, scope: str, symmetric: bool, device: torch.device, key: Tensor
):
    target = aimle.AdaptiveTarget.paper(2.0, scope=scope)
    layer = aimle.AIMLE(
        aimle.TopK(3), nb_samples=2, symmetric_perturbation=symmetric, target=target
    ).to(device)
    theta, dy = randn(3, 8, device=device), torch.zeros(3, 2, 8, device=device).double()
    dy[1, 1, 4] = value
    before = state_of(layer)
    _, gradient = run(layer, theta, dy, key=key)
    assert gradient[1].isnan().all()
    assert gradient[[0, 2]].eq(0).all()
    assert_same_state(layer, before)
    # Beside healthy samples it costs its own example only.
    dy[[0, 2]] = randn(2, 2, 8, device=device)
    _, gradient = run(layer, theta, dy, key=key)
    assert gradient[1].isnan().all()
    assert gradient[[0, 2]].isfinite().all()
    assert gradient[[0, 2]].count_nonzero() > 0
    assert layer.updates == 1
    assert all(value.isfinite() for value in layer.stats().values())


@pytest.mark.parametrize("scope", ["example", "sample", "batch"])
@pytest.mark.parametrize("symmetric", [True, False])
def test_a_nan_in_theta_is_a_nan_in_z_and_gradient(
    scope: str, symmetric: bool, device: torch.device, key: Tensor
):
    target = aimle.AdaptiveTarget.paper(2.0, scope=scope)
    layer = aimle.AIMLE(
        aimle.TopK(3), nb_samples=2, symmetric_perturbation=symmetric, target=target
    ).to(device)
    theta, dy = randn(3, 8, device=device), randn(3, 2, 8, device=device)
    theta[1, 2] = math.nan
    before = state_of(layer)
    z, gradient = run(layer, theta[1:2], dy[1:2], key=key)
    assert z.isnan().all()
    assert gradient.isnan().all()
    assert_same_state(layer, before)
    z, gradient = run(layer, theta, dy, key=key)
    assert z[1].isnan().all()
    assert gradient[1].isnan().all()
    assert z[[0, 2]].isfinite().all()
    assert gradient[[0, 2]].isfinite().all()
    assert layer.stats()["count"] <= 6
    assert layer.updates == 1


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_zero_lambda_gives_a_zero_gradient(symmetric: bool, device: torch.device):
    for target in (aimle.FixedTarget(0.0), aimle.AdaptiveTarget.paper()):
        for temperature in (1.0, 0.5):
            layer = aimle.AIMLE(
                aimle.TopK(3),
                symmetric_perturbation=symmetric,
                target=target,
                target_noise_temperature=temperature,
            ).to(device)
            _, gradient = run(layer, randn(3, 8, device=device))
            assert gradient.eq(0).all()


def test_one_vanishing_sample_does_not_blow_the_step_up(device: torch.device, key: Tensor):
    theta, dy = randn(1, 8, device=device), randn(1, 3, 8, seed=2, device=device)
    layer = aimle.AIMLE(aimle.TopK(3), nb_samples=3, target=aimle.AdaptiveTarget.paper(0.5)).to(
        device
    )
    dy[0, 1] *= 1e-9
    run(layer, theta, dy, key=key)
    ratios = theta.norm() / dy[0, [0, 2]].norm(dim=-1)
    assert layer.stats()["lambda_mean"].item() == pytest.approx(0.5 * ratios.mean().item())
