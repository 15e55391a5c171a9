"""Every estimator that applies to lattice paths, against the exact value of its mean.

For the score function and the exact marginals this is the gradient under the exponential family.
For estimators of perturbed scores it is what the guide's page on the mathematics derives: the
gradient of the expected loss, or, for a step of finite size, the difference of the mean paths.
"""

import contextlib
from functools import partial

import pytest
import torch
from exact_gradients import assert_unbiased, quadratic
from exact_gradients import linear as linear_loss
from three_paths import THREE_PATHS, expected, mean_path, paths_of, probabilities
from torch import Tensor

import aimle
from aimle import exact

KEY = torch.tensor([7, 11])
LATTICES = {
    "lattice": (aimle.LatticePath(), (3, 3)),
    "diagonal": (aimle.LatticePath("diagonal"), (4, 2)),
    "moves": (aimle.LatticeMoves(), (2, 3, 3)),
}
APPLIES = [
    "aimle",
    "aimle_covariance",
    "aimle_forward",
    "aimle_noise",
    "dbb",
    "dpo",
    "exact",
    "identity",
    "imle",
    "imle_central",
    "sfe",
    "sst",
    "ste",
    "thresholds",
]


def randn(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def linear(dims: int, weights: Tensor, z: Tensor) -> Tensor:
    return (z * weights).flatten(-dims).sum(-1)


def curved(dims: int, weights: Tensor, z: Tensor) -> Tensor:
    along = linear(dims, weights, z)
    return along + 0.5 * along.square() + torch.sin(2 * along)


def replicate(layer: torch.nn.Module, theta: Tensor, loss, replicas: int = 400) -> Tensor:
    """Gradients of the mean loss over the layer's samples, [replicas, n], by independent noise."""
    rows = theta.expand(replicas, *theta.shape).clone().requires_grad_()
    z = layer(rows, key=KEY)
    losses = layer.surrogate(rows, z, loss(z)) if hasattr(layer, "surrogate") else loss(z)
    losses.reshape(replicas, -1).mean(-1).sum().backward()
    return rows.grad.flatten(1)


def scores(lattice: str) -> tuple[aimle.Solver, Tensor, Tensor]:
    """The solver, theta, and the weights of a loss."""
    solver, shape = LATTICES[lattice]
    return solver, 0.5 * randn(*shape), randn(*shape, seed=1)


def case(lattice: str, loss) -> tuple:
    solver, theta, weights = scores(lattice)
    of = partial(loss, theta.dim(), weights)
    return solver, theta, of, exact.exact_gradient(solver, theta, of).flatten()


def test_which_estimators_apply():
    applies = []
    for name in aimle.estimators():
        with contextlib.suppress(TypeError):
            aimle.estimator(name, aimle.LatticePath())
            applies.append(name)
    assert sorted(applies) == APPLIES


@pytest.mark.parametrize("lattice", LATTICES)
@pytest.mark.parametrize("baseline", ["none", "leave_one_out"])
def test_the_score_function_is_unbiased_for_any_loss(lattice: str, baseline: str):
    solver, theta, loss, gradient = case(lattice, curved)
    layer = aimle.SFE(solver, nb_samples=100, baseline=baseline)
    chosen = gradient.abs() > 1e-9  # the ends of every path have no gradient
    assert_unbiased(replicate(layer, theta, loss)[:, chosen], gradient[chosen])


@pytest.mark.parametrize("lattice", LATTICES)
def test_exact_marginals_are_exact_for_linear_losses(lattice: str):
    solver, theta, loss, gradient = case(lattice, linear)
    for got in replicate(aimle.ExactMarginals(solver), theta, loss, replicas=3):
        torch.testing.assert_close(got, gradient)


# ---- Perturbed paths, against their exact probabilities ------------------------------------------

SAMPLES, TAU, ALPHA = 50, 0.8, 0.5
NORMAL = {"noise": "normal", "temperature": TAU, "nb_samples": SAMPLES}
each_of_three_paths = pytest.mark.parametrize("lattice", THREE_PATHS)


def problem(lattice: str) -> tuple[aimle.Solver, Tensor, Tensor]:
    """The solver, theta, and the weights of a linear loss."""
    solver, shape = THREE_PATHS[lattice]
    return solver, 0.5 * randn(*shape, seed=2), randn(*shape, seed=3)


def assert_means(gradients: Tensor, limit: Tensor):
    """The mean of the rows is the limit, within five standard errors; exactly where they agree."""
    varies = gradients.std(0) > 1e-9
    assert varies.any()
    assert_unbiased(gradients[:, varies], limit[varies])
    torch.testing.assert_close(gradients.mean(0)[~varies], limit[~varies], rtol=1e-9, atol=1e-9)


@each_of_three_paths
@pytest.mark.parametrize("reduction", ["none", "leave_one_out"])
def test_perturbed_optimisers_are_unbiased_for_linear_losses(lattice: str, reduction: str):
    solver, theta, weights = problem(lattice)
    leaf = theta.flatten().requires_grad_()
    (mean_path(lattice, leaf, TAU) @ weights.flatten()).backward()
    layer = aimle.DPO(solver, variance_reduction=reduction, **NORMAL)
    gradients = replicate(layer, theta, partial(linear, theta.dim(), weights))
    assert_means(gradients, leaf.grad)


@each_of_three_paths
@pytest.mark.parametrize("order", ["trapezoid", "first"])
def test_thresholds_are_unbiased_for_quadratic_and_linear_losses(lattice: str, order: str):
    solver, theta, _ = problem(lattice)
    loss = (quadratic if order == "trapezoid" else linear_loss)(theta.numel())
    leaf = theta.flatten().requires_grad_()
    expected(lattice, leaf, TAU, loss).backward()
    layer = aimle.Thresholds(solver, order=order, **NORMAL)
    assert_means(replicate(layer, theta, lambda z: loss(z.flatten(2))), leaf.grad)


@each_of_three_paths
@pytest.mark.parametrize(
    ("name", "settings", "sides"),
    [
        ("aimle", {"alpha_range": (ALPHA, ALPHA)}, 2),
        ("aimle_forward", {"alpha_range": (ALPHA, ALPHA)}, 1),
        ("aimle_noise", {"alpha_range": (ALPHA, ALPHA)}, 2),
        ("imle", {"lambda_": 0.3 * SAMPLES}, 1),
        ("imle_central", {"lambda_": 0.3 * SAMPLES}, 2),
    ],
)
def test_differences_of_solutions_are_those_of_the_mean_path(
    lattice: str, name: str, settings: dict, sides: int
):
    """For a linear loss, all samples step by the same amount, along its weights."""
    solver, theta, weights = problem(lattice)
    if "lambda_" in settings:
        step = 0.3  # times the weights; a sample's own gradient is 1/SAMPLES of them
    else:
        noise = TAU * theta.numel() ** 0.5
        scale = noise if name == "aimle_noise" else max(theta.norm().item(), noise)
        step = ALPHA * scale / weights.norm().item()
    flat, along = theta.flatten(), step * weights.flatten()
    ahead = mean_path(lattice, flat + (along if sides == 2 else 0), TAU)
    limit = (ahead - mean_path(lattice, flat - along, TAU)) / (sides * step)
    layer = aimle.estimator(name, solver, **NORMAL, **settings)
    assert_means(replicate(layer, theta, partial(linear, theta.dim(), weights)), limit)


@each_of_three_paths
def test_the_covariance_of_loss_and_path_is_that_of_the_perturbed_paths(lattice: str):
    solver, theta, weights = problem(lattice)
    flat = theta.flatten()

    def loss(z: Tensor) -> Tensor:
        return curved(1, weights.flatten(), z)

    product = expected(lattice, flat, TAU, lambda z: loss(z).unsqueeze(-1) * z)
    means = expected(lattice, flat, TAU, loss) * mean_path(lattice, flat, TAU)
    layer = aimle.estimator("aimle_covariance", solver, share=1.0, **NORMAL)
    gradients = replicate(layer, theta, lambda z: loss(z.flatten(2)))
    assert_means(gradients, (product - means) / TAU)


def test_the_covariance_is_unbiased_for_any_loss_where_two_paths_differ_in_a_cell_each():
    """The difference of two Gumbel variables is logistic, which is the exponential family."""
    solver, theta, weights = aimle.LatticePath("diagonal"), 0.5 * randn(3, 2), randn(3, 2, seed=1)
    loss = partial(curved, 2, weights)
    gradient = exact.exact_gradient(solver, theta, loss).flatten()
    settings = {"noise": "gumbel", "temperature": 1.0, "nb_samples": SAMPLES}
    layer = aimle.estimator("aimle_covariance", solver, share=1.0, **settings)
    assert_means(replicate(layer, theta, loss), gradient)


@each_of_three_paths
def test_straight_through_gradients_are_those_of_the_loss_at_the_paths(lattice: str):
    solver, theta, _ = problem(lattice)
    loss = quadratic(theta.numel())
    z = paths_of(lattice).requires_grad_()
    loss(z).sum().backward()
    limit = probabilities(lattice, theta.flatten(), TAU) @ z.grad
    layer = aimle.estimator("ste", solver, **NORMAL)
    assert_means(replicate(layer, theta, lambda z: loss(z.flatten(2))), limit)


# ---- Estimators that are known for each draw -----------------------------------------------------


@pytest.mark.parametrize("lattice", LATTICES)
def test_stochastic_softmax_tricks_differentiate_the_marginals(lattice: str):
    solver, theta, weights = scores(lattice)
    structures, t, samples = exact.structures(solver, theta).double().flatten(1), 0.5, 3
    rows = theta.expand(4, *theta.shape).clone().requires_grad_()
    layer = aimle.SST(solver, temperature=t, nb_samples=samples)
    found = layer(rows, key=KEY)
    (gradient,) = torch.autograd.grad(curved(theta.dim(), weights, found).sum(), rows)

    eps = aimle.sample_noise(
        "gumbel", rows.shape, KEY, nb_samples=samples, instance_dims=theta.dim()
    )
    x = (rows.unsqueeze(1) + eps.double()).flatten(2) / t
    marginals = torch.softmax(x @ structures.T, -1) @ structures
    torch.testing.assert_close(found.flatten(2), marginals)
    (by_hand,) = torch.autograd.grad(curved(1, weights.flatten(), marginals).sum(), rows)
    torch.testing.assert_close(gradient, by_hand)


@pytest.mark.parametrize("lattice", LATTICES)
def test_estimators_without_noise_equal_their_formulas(lattice: str):
    solver, theta, weights = scores(lattice)
    structures, lambda_ = exact.structures(solver, theta).double().flatten(1), 2.0

    def best(x: Tensor) -> Tensor:
        return structures[(structures @ x.flatten()).argmax()]

    def gradient(layer: torch.nn.Module, weights: Tensor) -> Tensor:
        rows = theta.unsqueeze(0).clone().requires_grad_()
        linear(theta.dim(), weights, layer(rows)).sum().backward()
        return rows.grad.flatten()

    moved = [(best(theta) - best(theta - lambda_ * w)) / lambda_ for w in (weights, -weights)]
    assert torch.stack(moved).any()
    for w, by_hand in zip((weights, -weights), moved, strict=True):
        torch.testing.assert_close(gradient(aimle.DBB(solver, lambda_), w), by_hand)

    # The identity passes the weights on, through the Jacobian of theta -> (theta - mean) / norm.
    leaf = theta.flatten().requires_grad_()
    centred = leaf - leaf.mean()
    projected = centred / centred.norm()
    (by_hand,) = torch.autograd.grad(projected @ weights.flatten(), leaf)
    torch.testing.assert_close(gradient(aimle.Identity(solver), weights), by_hand)


@pytest.mark.parametrize("name", APPLIES)
def test_no_estimator_looks_beyond_a_ragged_corner(name: str):
    layer = aimle.estimator(name, aimle.LatticePath())
    sizes = [(4, 5), (2, 3), (1, 1)]
    mask = torch.zeros(3, 4, 5, dtype=torch.bool)
    for row, (height, width) in enumerate(sizes):
        mask[row, :height, :width] = True
    theta = randn(3, 4, 5).requires_grad_()
    z = layer(theta, mask=mask, key=KEY)
    losses = (z * randn(4, 5, seed=1)).flatten(-2).sum(-1)
    if hasattr(layer, "surrogate"):
        losses = layer.surrogate(theta, z, losses, **({"mask": mask} if name == "sfe" else {}))
    losses.sum().backward()
    assert theta.grad.isfinite().all()
    assert not theta.grad[~mask].any()
    each = z.detach() if z.dim() == 4 else z.detach().unsqueeze(1)
    for row, (height, width) in enumerate(sizes):
        assert not each[row, :, ~mask[row]].any()
        torch.testing.assert_close(
            each[row, :, height - 1, width - 1], torch.ones(each.shape[1]).double()
        )


@pytest.mark.parametrize("lattice", LATTICES)
def test_costs_are_the_negative_of_scores(lattice: str):
    solver, theta, loss, _ = case(lattice, linear)
    layers = [aimle.AIMLE(solver, sense=s, nb_samples=4, noise=None) for s in ("max", "min")]
    scores, costs = (t.unsqueeze(0).clone().requires_grad_() for t in (theta, -theta))
    z, z_of_costs = layers[0](scores), layers[1](costs)
    assert torch.equal(z, z_of_costs)
    loss(z).sum().backward()
    loss(z_of_costs).sum().backward()
    assert torch.equal(scores.grad, -costs.grad)
