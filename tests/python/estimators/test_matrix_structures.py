"""Estimators over structures whose instances are matrices: assignments and arborescences.

Those of exact distributions meet the exact gradient within the standard error. Those of perturbed
scores are held against the gradient of E f(z(theta + noise)) by its score function, over so many
draws that its error does not matter.
"""

from functools import cache

import pytest
import torch
from exact_gradients import assert_unbiased, cosine, curved, exact_gradient, linear, quadratic
from torch import Tensor

import aimle

KEY = torch.tensor([7, 11])
SOLVERS = {
    "assignment": (aimle.Assignment(), (3, 3)),
    "wide assignment": (aimle.Assignment(), (2, 3)),
    "arborescence": (aimle.Arborescence(), (3, 3)),
    "arborescence of one root": (aimle.Arborescence(single_root=True), (3, 3)),
}
EXACT = ["arborescence", "arborescence of one root"]


def scores(structure: str, seed: int = 0) -> Tensor:
    return torch.randn(SOLVERS[structure][1], generator=torch.Generator().manual_seed(seed))


def size(structure: str) -> int:
    rows, columns = SOLVERS[structure][1]
    return rows * columns


def family_gradient(structure: str, theta: Tensor, loss) -> Tensor:
    """Of E f(z) under the exponential family, flat."""
    solver = SOLVERS[structure][0]
    z = aimle.exact.structures(solver, theta).double().flatten(1)
    return exact_gradient(theta.flatten(), z, lambda at: torch.softmax(z @ at, -1), loss)


@cache
def perturbed_gradient(structure: str, seed: int, draws: int = 200_000) -> Tensor:
    """Of E f(z(theta + Gumbel)), flat: E f(z) (1 - exp(-noise)), with a baseline."""
    solver, instance = SOLVERS[structure]
    theta, loss = scores(structure, seed), quadratic(size(structure), seed)
    noise = aimle.sample_noise(
        aimle.Gumbel(), instance, KEY, nb_samples=draws, instance_dims=2
    ).reshape(draws, *instance)
    f = loss(solver(theta + noise).double().flatten(1))
    slope = 1 - torch.exp(-noise.double().flatten(1))
    return ((f - f.mean()).unsqueeze(-1) * slope).mean(0)


def replicate(layer: torch.nn.Module, theta: Tensor, loss, replicas: int) -> Tensor:
    """Gradients of the mean loss over the layer's samples, [replicas, n], by independent noise."""
    rows = theta.expand(replicas, *theta.shape).clone().requires_grad_()
    z = layer(rows, key=KEY)
    values = loss(z.flatten(-2))
    if hasattr(layer, "surrogate"):
        values = layer.surrogate(rows, z, values)
    values.reshape(replicas, -1).mean(-1).sum().backward()
    return rows.grad.double().flatten(1)


@pytest.mark.parametrize("baseline", ["none", "leave_one_out"])
@pytest.mark.parametrize("structure", EXACT)
def test_the_score_function_is_unbiased_for_any_loss(structure: str, baseline: str):
    theta, loss = scores(structure), curved(size(structure))
    layer = aimle.estimator("sfe", SOLVERS[structure][0], nb_samples=100, baseline=baseline)
    assert_unbiased(replicate(layer, theta, loss, 300), family_gradient(structure, theta, loss))


@pytest.mark.parametrize("structure", EXACT)
def test_the_jacobian_of_exact_marginals_is_exact_for_linear_losses(structure: str):
    theta, loss = scores(structure), linear(size(structure))
    layer = aimle.estimator("exact", SOLVERS[structure][0], nb_samples=2)
    got = replicate(layer, theta.double(), loss, 4)
    torch.testing.assert_close(got, family_gradient(structure, theta, loss).expand(4, -1))


@pytest.mark.parametrize("structure", SOLVERS)
@pytest.mark.parametrize(
    ("name", "settings", "limit"),
    [
        ("aimle", {"alpha_range": (0.5, 0.5)}, 0.9),
        ("aimle_forward", {"alpha_range": (0.5, 0.5)}, 0.7),
        ("aimle_noise", {}, 0.9),
        ("aimle_covariance", {}, 0.85),
        ("imle", {"lambda_": 0.5}, 0.7),
        ("imle_central", {"lambda_": 0.5}, 0.9),
        ("ste", {}, 0.4),
        ("dpo", {"noise": "gumbel"}, 0.85),
        ("sst", {"temperature": 0.5}, 0.9),
        ("exact", {}, 0.85),
    ],
)
def test_biased_estimators_point_the_right_way(structure: str, name: str, settings, limit: float):
    solver = SOLVERS[structure][0]
    if name in ("sst", "exact") and structure not in EXACT:
        with pytest.raises(TypeError, match=f"but got {type(solver).__name__}"):
            aimle.estimator(name, solver, **settings)
        return
    cosines = []
    for seed in range(3):
        theta, loss = scores(structure, seed), quadratic(size(structure), seed)
        layer = aimle.estimator(name, solver, nb_samples=100, **settings)
        gradients = replicate(layer, theta, loss, 100)
        cosines.append(cosine(gradients, perturbed_gradient(structure, seed)))
    assert sum(cosines) / 3 > limit, cosines


def test_perturbed_optimisers_of_two_rows_are_unbiased():
    """Under Normal noise the better diagonal is known: P = Phi(gap / 2)."""
    theta, loss = torch.randn(2, 2, generator=torch.Generator().manual_seed(1)), linear(4)
    z = aimle.exact.structures(aimle.Assignment(), theta).double().flatten(1)

    def probabilities(at: Tensor) -> Tensor:
        p = torch.special.ndtr((at[0] + at[3] - at[1] - at[2]) / 2)
        return torch.stack([p, 1 - p])

    layer = aimle.estimator("dpo", aimle.Assignment(), noise="normal", nb_samples=100)
    exact = exact_gradient(theta.flatten(), z, probabilities, loss)
    assert_unbiased(replicate(layer, theta, loss, 400), exact)
