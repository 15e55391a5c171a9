"""The layers: shapes, samples, gradients, senses, modes, masks, types, statistics."""

import math
from itertools import product

import pytest
import torch
from layer_cases import (
    NOISES,
    PROBLEMS,
    leaf,
    plain,
    randn,
    run,
    state_of,
)
from torch import Tensor

import aimle

OUTPUTS = ("samples", "flat", "mean")


def adaptive(alpha: float = 0.5, **settings) -> aimle.AdaptiveTarget:
    return aimle.AdaptiveTarget(initial_alpha=alpha, **settings)


def gradient_shape(layer: aimle.PerturbedMap, theta: Tensor) -> tuple[int, ...]:
    dims = layer.solver.instance_dims
    batch, instance = theta.shape[: theta.dim() - dims], theta.shape[theta.dim() - dims :]
    samples = layer.nb_samples
    if layer.output == "flat":
        return (math.prod(batch) * samples, *instance)
    return (*batch, *((samples,) if layer.output == "samples" else ()), *instance)


# ---- z and its gradient --------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("noise", NOISES)
def test_every_mode_equals_the_method_as_written(
    name: str, noise: str, device: torch.device, key: Tensor
):
    problem = PROBLEMS[name]
    theta = problem.theta(3, device=device)
    changed = 0
    for difference, output, sense in product(("central", "forward"), OUTPUTS, ("max", "min")):
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
    assert torch.equal(results["mean"], results["samples"].mean(len(batch)))
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
        return run(layer, theta, dy, key=key)[1]

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
    assert torch.equal(z, z_each.mean(1))
    torch.testing.assert_close(gradient, summed / 6, rtol=1e-12, atol=0)


# ---- Senses --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
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


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("sense", [None, "max", "min"])
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


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("sense", ["max", "min"])
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
    layer = aimle.AIMLE(problem.solver, nb_samples=5, target=adaptive(0.8)).to(device).eval()
    before = {name: state_of(layer)[name] for name in ("alpha", "gbar", "updates")}
    z, gradient = run(layer, theta)
    assert torch.equal(z, problem.solver(theta).unsqueeze(1))
    silent = aimle.AIMLE(problem.solver, noise=None, target=adaptive(0.8)).to(device)
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


# ---- Masks and k ---------------------------------------------------------------------------------


@pytest.mark.parametrize("difference", ["central", "forward"])
@pytest.mark.parametrize("name", ["argmax", "topk", "tree"])
def test_masks(name: str, difference: str, device: torch.device, key: Tensor):
    problem = PROBLEMS[name]
    theta = problem.theta(2, 3, device=device)
    mask = torch.ones_like(theta, dtype=torch.bool)
    mask[..., ::4] = False
    layer = aimle.AIMLE(
        problem.solver,
        nb_samples=4,
        symmetric_perturbation=difference == "central",
        target=adaptive(0.8),
    ).to(device)
    dy = randn(2, 3, 4, *problem.instance, device=device)
    expected = plain(layer, theta, dy, key, mask=mask)
    # What is under the mask does not matter.
    theta, dy = theta.masked_fill(~mask, math.nan), dy.clone()
    dy[..., ::4] = math.inf
    z, gradient = run(layer, theta, dy, mask=mask, key=key)
    assert torch.equal(z, expected.z)
    assert z[..., ::4].eq(0).all()
    torch.testing.assert_close(gradient, expected.gradient, rtol=1e-12, atol=0)
    assert gradient[..., ::4].eq(0).all()
    assert gradient.count_nonzero() > 0
    assert layer.updates == 1
    stats = layer.stats()
    assert stats["count"].item() == expected.count
    assert stats["zero_share"].item() == expected.zero_share


def test_a_mask_is_broadcast(device: torch.device, key: Tensor):
    problem = PROBLEMS["topk"]
    theta = problem.theta(2, 3, device=device)
    for shape in ((8,), (3, 8), (2, 1, 8), (2, 3, 1)):
        mask = torch.ones(shape, dtype=torch.bool, device=device)
        if shape[-1] == 8:
            mask[..., 2:4] = False
        results = []
        for given in (mask, mask.expand_as(theta)):
            layer = aimle.AIMLE(problem.solver, nb_samples=2, target=adaptive()).to(device)
            results.append(run(layer, theta, mask=given, key=key))
        assert torch.equal(results[0][0], results[1][0])
        assert torch.equal(results[0][1], results[1][1])


def test_a_masked_grid_walks_round(device: torch.device, key: Tensor):
    problem = PROBLEMS["grid"]
    theta = problem.theta(3, device=device)
    mask = torch.ones(4, 5, dtype=torch.bool, device=device)
    mask[1:3, 2] = False
    layer = aimle.AIMLE(problem.solver, nb_samples=3, target=adaptive(0.8)).to(device)
    dy = randn(3, 3, 4, 5, device=device)
    expected = plain(layer, theta, dy, key, mask=mask)
    z, gradient = run(layer, theta, dy, mask=mask, key=key)
    assert torch.equal(z, expected.z)
    torch.testing.assert_close(gradient, expected.gradient, rtol=1e-12, atol=0)


@pytest.mark.parametrize("difference", ["central", "forward"])
def test_every_row_may_have_its_own_k(difference: str, device: torch.device, key: Tensor):
    problem = PROBLEMS["topk"]
    theta = problem.theta(2, 3, device=device)
    k = torch.tensor([[0, 1, 2], [3, 7, 8]], device=device)
    layer = aimle.AIMLE(
        aimle.TopK(100),  # replaced row by row
        nb_samples=4,
        symmetric_perturbation=difference == "central",
        target=adaptive(0.8),
    ).to(device)
    dy = randn(2, 3, 4, 8, device=device)
    expected = plain(layer, theta, dy, key, k=k)
    z, gradient = run(layer, theta, dy, k=k, key=key)
    assert torch.equal(z.sum(-1), k[..., None].expand(-1, -1, 4).to(z))
    assert torch.equal(z, expected.z)
    torch.testing.assert_close(gradient, expected.gradient, rtol=1e-12, atol=0)
    assert layer(theta, k=5).sum(-1).eq(5).all()
    assert layer(theta, k=torch.tensor([[1], [2]], device=device)).sum() == 3 * 4 * (1 + 2)


def test_minus_infinity_is_masked(device: torch.device, key: Tensor):
    problem = PROBLEMS["topk"]
    theta = problem.theta(3, device=device)
    mask = torch.ones_like(theta, dtype=torch.bool)
    mask[:, 1::3] = False
    dy = randn(3, 4, 8, device=device)
    results = []
    for values, given in ((theta, mask), (theta.masked_fill(~mask, -math.inf), None)):
        layer = aimle.AIMLE(problem.solver, nb_samples=4, target=adaptive()).to(device)
        results.append((*run(layer, values, dy, mask=given, key=key), state_of(layer)))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])
    assert all(torch.equal(results[0][2][name], value) for name, value in results[1][2].items())


# ---- Types and layouts ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("difference", ["central", "forward"])
def test_types(dtype: torch.dtype, difference: str, device: torch.device, key: Tensor):
    """bfloat16 and float16 are worked in float32 and only rounded at the end."""
    problem = PROBLEMS["topk"]
    theta = problem.theta(3, dtype=dtype, device=device)
    dy = randn(3, 4, 8, dtype=dtype, device=device)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    results = []
    for given in (dtype, wide):
        layer = aimle.AIMLE(
            problem.solver,
            nb_samples=4,
            symmetric_perturbation=difference == "central",
            target=adaptive(),
        ).to(device)
        results.append((*run(layer, theta.to(given), dy.to(given), key=key), layer.gbar))
    assert results[0][0].dtype == results[0][1].dtype == dtype
    assert torch.equal(results[0][0], results[1][0].to(dtype))
    assert torch.equal(results[0][1], results[1][1].to(dtype))
    assert torch.equal(results[0][2], results[1][2])


def test_any_layout_of_theta_and_dy(device: torch.device, key: Tensor):
    problem = PROBLEMS["topk"]
    theta, dy = problem.theta(5, device=device), randn(5, 4, 8, device=device)

    def gradient(theta: Tensor, dy: Tensor) -> Tensor:
        layer = aimle.AIMLE(problem.solver, nb_samples=4, target=adaptive()).to(device)
        theta = theta.detach().requires_grad_()
        layer(theta, key=key).backward(dy)
        return theta.grad

    expected = gradient(theta, dy)
    assert expected.count_nonzero() > 0
    strided = torch.empty(8, 10, dtype=theta.dtype, device=device)[:, ::2].t().copy_(theta)
    assert not strided.is_contiguous()
    assert torch.equal(gradient(strided, dy), expected)
    assert torch.equal(gradient(theta, dy.permute(2, 0, 1).contiguous().permute(1, 2, 0)), expected)
    row = randn(8, device=device)
    assert torch.equal(
        gradient(theta, row.expand(5, 4, 8)), gradient(theta, row.expand(5, 4, 8).contiguous())
    )


def test_a_sum_sends_an_expanded_dy(device: torch.device, key: Tensor):
    problem = PROBLEMS["topk"]
    theta = leaf(problem.theta(3, device=device))
    layer = aimle.STE(problem.solver, nb_samples=4).to(device)
    layer(theta, key=key).sum().backward()
    assert theta.grad.eq(4).all()


def test_an_empty_batch(device: torch.device):
    layer = aimle.AIMLE(aimle.TopK(3), nb_samples=2).to(device)
    z, gradient = run(layer, torch.empty(0, 4, 8, device=device))
    assert z.shape == (0, 4, 2, 8)
    assert gradient.shape == (0, 4, 8)
    assert layer.updates == 0


# ---- Statistics ----------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["example", "sample", "batch"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_stats_are_what_the_pass_saw(name: str, scope: str, device: torch.device, key: Tensor):
    problem = PROBLEMS[name]
    theta = problem.theta(6, device=device)
    layer = aimle.AIMLE(problem.solver, nb_samples=3, target=adaptive(0.5, scope=scope)).to(device)
    names = {"lambda_mean", "lambda_min", "lambda_max", "count", "zero_share", "changed_share"}
    assert set(layer.stats()) == names | {"alpha", "gbar", "updates"}
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
    step = 1e-3 if stats["gbar"] <= 1 else -1e-3
    assert stats["alpha"] == pytest.approx(0.5 + step, rel=1e-12)
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
