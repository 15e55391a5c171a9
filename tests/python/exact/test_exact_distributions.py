"""Exact distributions against lists of structures, finite differences and multiprecision."""

import mpmath
import numpy as np
import oracles
import pytest
import torch
from exact_cases import (
    WEIGHTS,
    Structure,
    assert_equal_to_multiprecision,
    each_structure,
    seeded,
    sets,
)
from torch import Tensor

import aimle
from aimle import exact

pytestmark = pytest.mark.usefixtures("everything_on_the_device")


# ---- Values --------------------------------------------------------------------------------------


@each_structure
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_values_are_those_of_the_list(structure: Structure, scale: float):
    solver, n, build = structure
    z = build()
    x, v = seeded(20, n, scale=scale), seeded(20, n, seed=1)
    exponents = x @ z.T
    p = exponents.softmax(-1)
    mu = p @ z
    along = v @ z.T
    cov = (p * (along - (p * along).sum(-1, keepdim=True))) @ z
    torch.testing.assert_close(exact.log_partition(solver, x), exponents.logsumexp(-1))
    torch.testing.assert_close(exact.marginals(solver, x), mu, rtol=1e-10, atol=1e-14)
    torch.testing.assert_close(exact.covariance(solver, x, v), cov, rtol=1e-9, atol=1e-13)


@each_structure
def test_values_are_those_of_multiprecision(structure: Structure):
    assert_equal_to_multiprecision(structure.solver, structure.build())


@each_structure
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_other_dtypes_are_the_same_numbers_rounded(structure: Structure, dtype: torch.dtype):
    solver, n, _ = structure
    x, v = seeded(4, 5, n).to(dtype), seeded(4, 5, n, seed=1).to(dtype)
    for function, extra in (
        (exact.log_partition, ()),
        (exact.marginals, ()),
        (exact.covariance, (v,)),
    ):
        got = function(solver, x, *extra)
        assert got.dtype == dtype
        expected = function(solver, x.double(), *(t.double() for t in extra))
        torch.testing.assert_close(got, expected.to(dtype))


def test_a_hundred_of_a_thousand_in_float32():
    x = seeded(2, 1000, scale=10.0).float()
    mu = exact.marginals(aimle.TopK(100), x)
    assert mu.min() >= 0
    assert mu.max() <= 1
    torch.testing.assert_close(mu.double().sum(-1), torch.full((2,), 100.0).double())
    assert exact.log_partition(aimle.TopK(100), x).isfinite().all()


def test_masks_and_k_per_row():
    x = seeded(3, 6)
    mask = torch.tensor([True, True, False, True, True, True])
    k = torch.tensor([0, 2, 5])
    mu = exact.marginals(aimle.TopK(1), x, mask=mask, k=k)
    torch.testing.assert_close(mu.sum(-1), k.double())
    assert (mu[:, 2] == 0).all()
    for row in range(3):
        alone = exact.marginals(aimle.TopK(int(k[row])), x[row][mask])
        torch.testing.assert_close(mu[row][mask], alone)
    assert torch.equal(exact.marginals(aimle.TopK(1), x, k=2), exact.marginals(aimle.TopK(2), x))


def test_trees_of_equal_weights():
    mu = exact.marginals(aimle.SpanningTree(10), torch.full((45,), 3.0))
    torch.testing.assert_close(mu, torch.full((45,), 0.2), rtol=1e-7, atol=0)


def tree_logits(kind: str) -> Tensor:
    """45 logits of a graph of 10 vertices."""
    if kind == "random":
        return seeded(45, scale=12.0).clamp(-30, 30)
    if kind == "uniform":
        generator = torch.Generator("cpu").manual_seed(2)
        uniform = torch.rand(45, generator=generator, device="cpu").double()
        return (60 * uniform - 30).to(torch.get_default_device())
    return torch.tensor(
        [30.0 if (i < 5) == (j < 5) else -30.0 for i, j in oracles.edges(10)]
    ).double()


@pytest.mark.parametrize("kind", ["random", "uniform", "clusters"])
def test_trees_are_those_of_multiprecision(kind: str):
    """Kirchhoff's theorem with 120 digits: the determinant, its inverse, and their derivatives."""
    n, x, v = 10, tree_logits(kind), seeded(45, seed=3)

    def marginals_at(logits: list) -> tuple[object, list]:
        laplacian = mpmath.zeros(n)
        for (i, j), logit in zip(oracles.edges(n), logits, strict=True):
            w = mpmath.exp(logit)
            laplacian[i, i] += w
            laplacian[j, j] += w
            laplacian[i, j] -= w
            laplacian[j, i] -= w
        reduced = laplacian[: n - 1, : n - 1]
        inverse = reduced**-1
        green = lambda i, j: inverse[i, j] if max(i, j) < n - 1 else mpmath.mpf(0)  # noqa: E731
        mu = [
            mpmath.exp(logit) * (green(i, i) + green(j, j) - 2 * green(i, j))
            for (i, j), logit in zip(oracles.edges(n), logits, strict=True)
        ]
        return mpmath.log(mpmath.det(reduced)), mu

    with mpmath.workdps(120):
        logits = [mpmath.mpf(value) for value in x.tolist()]
        step = mpmath.mpf(10) ** -40
        log_z, mu = marginals_at(logits)
        _, ahead = marginals_at([a + step * b for a, b in zip(logits, v.tolist(), strict=True)])
        cov = [float((b - a) / step) for a, b in zip(mu, ahead, strict=True)]
        log_z, mu = float(log_z), [float(value) for value in mu]

    tree = aimle.SpanningTree(n)
    assert exact.log_partition(tree, x).item() == pytest.approx(log_z, rel=1e-14)
    got = exact.marginals(tree, x)
    torch.testing.assert_close(got, torch.tensor(mu, dtype=torch.float64), rtol=1e-13, atol=0)
    torch.testing.assert_close(got.sum(), torch.tensor(9.0).double(), rtol=1e-14, atol=0)
    torch.testing.assert_close(
        exact.covariance(tree, x, v), torch.tensor(cov, dtype=torch.float64), rtol=0, atol=1e-14
    )


@each_structure
def test_the_entropy_is_that_of_the_list(structure: Structure):
    solver, n, build = structure
    x = seeded(5, n)
    p = (x @ build().T).softmax(-1)
    torch.testing.assert_close(exact.entropy(solver, x), torch.special.entr(p).sum(-1))


def test_the_entropy_of_rows_with_data_of_their_own():
    x, capacities = seeded(2, len(WEIGHTS)), (9, 5)
    data = torch.tensor([[*WEIGHTS, capacity] for capacity in capacities])
    got = exact.entropy(aimle.Knapsack(WEIGHTS, 9), x, data=data)
    for row, capacity, value in zip(x, capacities, got, strict=True):
        p = (sets(WEIGHTS, capacity) @ row).softmax(-1)
        torch.testing.assert_close(value, torch.special.entr(p).sum())


# ---- Gradients -----------------------------------------------------------------------------------


@each_structure
def test_gradients(structure: Structure):
    solver, n, _ = structure
    x = seeded(2, n).requires_grad_()
    v = seeded(2, n, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: exact.log_partition(solver, x), x)
    assert torch.autograd.gradgradcheck(lambda x: exact.log_partition(solver, x), x)
    assert torch.autograd.gradcheck(lambda x: exact.marginals(solver, x), x)
    assert torch.autograd.gradcheck(lambda v: exact.covariance(solver, x.detach(), v), v)


@each_structure
def test_a_third_derivative_is_refused(structure: Structure):
    solver, n, _ = structure
    x = seeded(n).requires_grad_()
    (first,) = torch.autograd.grad(exact.marginals(solver, x)[0], x, create_graph=True)
    with pytest.raises(NotImplementedError, match=r"covariance.*scores"):
        first[0].backward()


def test_gradients_with_masks_are_zero_where_masked():
    x = seeded(3, 6).requires_grad_()
    mask = torch.tensor([True, True, False, True, True, True])
    k = torch.tensor([1, 2, 4])
    assert torch.autograd.gradcheck(lambda x: exact.marginals(aimle.TopK(1), x, mask=mask, k=k), x)
    (exact.marginals(aimle.TopK(1), x, mask=mask, k=k)[:, 0].sum()).backward()
    assert (x.grad[:, 2] == 0).all()


def test_the_synthetic_study_has_the_gradient_known_for_it():
    random = np.random.RandomState(0)
    theta = torch.tensor(random.randn(10)).requires_grad_()
    b = torch.tensor(np.abs(random.randn(10)))
    assert theta[0].item() == pytest.approx(1.764052, abs=1e-6)
    assert b[0].item() == pytest.approx(0.144044, abs=1e-6)
    known = [0.11518, -0.09237, -0.04979, 0.19866, 0.00682, 0.00298, -0.16651, 0.01369, 0.00830]
    known.append(-0.03696)
    for solver in (aimle.Argmax(), aimle.TopK(1)):
        (gradient,) = torch.autograd.grad(exact.expected_square(solver, theta, b), theta)
        torch.testing.assert_close(gradient, torch.tensor(known).double(), rtol=0, atol=5e-6)


@each_structure
def test_expected_square_is_that_of_the_list(structure: Structure):
    solver, n, build = structure
    z = build()
    x = seeded(4, n).requires_grad_()
    b, weight = seeded(4, n, seed=1), seeded(n, seed=2)
    f = (weight * (z - b.unsqueeze(1)).square()).sum(-1)
    expected = ((x @ z.T).softmax(-1) * f).sum(-1)
    got = exact.expected_square(solver, x, b, weight=weight)
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(
        torch.autograd.grad(got.sum(), x), torch.autograd.grad(expected.sum(), x)
    )
