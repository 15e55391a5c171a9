"""Every estimator that applies to lattice paths, against the exact gradient."""

import contextlib

import pytest
import torch
from exact_gradients import assert_unbiased, cosine
from torch import Tensor

import aimle
from aimle import exact

KEY = torch.tensor([7, 11])
LATTICES = {
    "lattice": (aimle.LatticePath(), (3, 3)),
    "diagonal": (aimle.LatticePath("diagonal"), (4, 2)),
    "moves": (aimle.LatticeMoves(), (2, 3, 3)),
}
GUMBEL = {"noise": "gumbel", "temperature": 1.0}  # close to the exponential family
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


def case(lattice: str, loss) -> tuple:
    solver, shape = LATTICES[lattice]
    theta, weights, dims = 0.5 * randn(*shape), randn(*shape, seed=1), len(shape)
    of = lambda z: loss(dims, weights, z)  # noqa: E731
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


# Perturb-and-MAP is not the exponential family, but its gradient points the same way.
@pytest.mark.parametrize("lattice", LATTICES)
@pytest.mark.parametrize(
    ("name", "settings", "least"),
    [
        ("aimle", {"alpha_range": (0.5, 0.5), **GUMBEL}, 0.85),
        ("aimle_forward", {"alpha_range": (0.5, 0.5), **GUMBEL}, 0.85),
        ("aimle_noise", GUMBEL, 0.85),
        ("aimle_covariance", {"share": 1.0, **GUMBEL}, 0.85),
        ("imle", {"lambda_": 0.5, **GUMBEL}, 0.85),
        ("imle_central", {"lambda_": 0.5, **GUMBEL}, 0.85),
        ("dpo", {"temperature": 1.0}, 0.85),
        ("sst", {"temperature": 0.5}, 0.85),
        ("ste", GUMBEL, 0.2),
    ],
)
def test_gradients_point_the_way_of_the_exact_one(
    lattice: str, name: str, settings: dict, least: float
):
    solver, theta, loss, gradient = case(lattice, linear)
    layer = aimle.estimator(name, solver, nb_samples=50, **settings)
    got = replicate(layer, theta, loss)
    assert cosine(got, gradient) > least


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
