"""The distribution over arborescences against the list of them and multiprecision."""

import itertools

import mpmath
import pytest
import torch
from exact_cases import assert_equal_to_multiprecision, seeded
from torch import Tensor

import aimle
from aimle import exact

pytestmark = pytest.mark.usefixtures("everything_on_the_device")

SOLVERS = {
    "any roots": aimle.Arborescence(),
    "one root": aimle.Arborescence(single_root=True),
}
each_solver = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
N = 4


def arborescences(single_root: bool) -> Tensor:
    """Every structure of N vertices, [count, N, N]."""
    found = []
    for heads in itertools.product(range(N), repeat=N):
        ends = list(range(N))
        for _ in range(N):
            ends = [heads[v] for v in ends]
        if any(heads[v] != v for v in ends):
            continue
        if single_root and sum(heads[v] == v for v in range(N)) != 1:
            continue
        z = torch.zeros(N, N, dtype=torch.float64)
        z[list(heads), range(N)] = 1
        found.append(z)
    return torch.stack(found)


@each_solver
def test_structures_are_all_of_them(solver: aimle.Arborescence):
    listed = exact.structures(solver, torch.zeros(N, N)).double()
    expected = arborescences(solver.single_root)
    assert len(listed) == (N if solver.single_root else N + 1) ** (N - 1)
    assert {tuple(z.flatten().tolist()) for z in listed} == {
        tuple(z.flatten().tolist()) for z in expected
    }


@each_solver
@pytest.mark.parametrize("scale", [1.0, 30.0, 300.0])
def test_values_are_those_of_the_list(solver: aimle.Arborescence, scale: float):
    z = arborescences(solver.single_root).flatten(1)
    x, v = seeded(20, N, N, scale=scale), seeded(20, N, N, seed=1)
    exponents = x.flatten(1) @ z.T
    p = exponents.softmax(-1)
    mu = (p @ z).reshape(x.shape)
    along = v.flatten(1) @ z.T
    cov = ((p * (along - (p * along).sum(-1, keepdim=True))) @ z).reshape(x.shape)
    torch.testing.assert_close(exact.log_partition(solver, x), exponents.logsumexp(-1))
    torch.testing.assert_close(exact.marginals(solver, x), mu, rtol=1e-9, atol=1e-14)
    torch.testing.assert_close(exact.covariance(solver, x, v), cov, rtol=1e-8, atol=1e-12)


@each_solver
def test_values_are_those_of_multiprecision(solver: aimle.Arborescence):
    assert_equal_to_multiprecision(solver, arborescences(solver.single_root))


def test_many_vertices_are_those_of_multiprecision():
    """The determinant and the inverse of the Laplacian with 120 digits, for scores of +-30."""
    n = 10
    x = seeded(n, n, scale=14.0).clamp(-30, 30)
    with mpmath.workdps(120):
        laplacian = mpmath.zeros(n)
        weights = [[mpmath.exp(mpmath.mpf(score)) for score in row] for row in x.tolist()]
        for h, d in itertools.product(range(n), repeat=2):
            laplacian[d, d] += weights[h][d]
            if h != d:
                laplacian[h, d] -= weights[h][d]
        inverse = laplacian**-1
        log_z = float(mpmath.log(mpmath.det(laplacian)))
        mu = [
            [
                float(weights[h][d] * (inverse[d, d] - (inverse[d, h] if h != d else 0)))
                for d in range(n)
            ]
            for h in range(n)
        ]
    solver = aimle.Arborescence(n)
    assert exact.log_partition(solver, x).item() == pytest.approx(log_z, rel=1e-14)
    expected = torch.tensor(mu, dtype=torch.float64)
    torch.testing.assert_close(exact.marginals(solver, x), expected, rtol=1e-12, atol=0)


@each_solver
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_other_dtypes_are_the_same_numbers_rounded(solver: aimle.Arborescence, dtype: torch.dtype):
    x, v = seeded(3, N, N).to(dtype), seeded(3, N, N, seed=1).to(dtype)
    for function, extra in (
        (exact.log_partition, ()),
        (exact.marginals, ()),
        (exact.covariance, (v,)),
    ):
        got = function(solver, x, *extra)
        assert got.dtype == dtype
        expected = function(solver, x.double(), *(t.double() for t in extra))
        torch.testing.assert_close(got, expected.to(dtype))


@each_solver
def test_gradients(solver: aimle.Arborescence):
    x, v = seeded(2, N, N).requires_grad_(), seeded(2, N, N, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: exact.log_partition(solver, x), x)
    assert torch.autograd.gradgradcheck(lambda x: exact.log_partition(solver, x), x)
    assert torch.autograd.gradcheck(lambda x: exact.marginals(solver, x), x)
    assert torch.autograd.gradcheck(lambda v: exact.covariance(solver, x.detach(), v), v)


@each_solver
def test_samples_have_the_marginals_and_are_a_function_of_the_key(solver: aimle.Arborescence):
    x, key, count = seeded(2, N, N), torch.tensor([5, 6]), 20_000
    mask = torch.ones(2, N, N, dtype=torch.bool)
    mask[1, 0, 0] = mask[1, 2, 3] = False
    z = exact.sample(solver, x, key, count, mask=mask)
    assert z.shape == (2, count, N, N)
    assert torch.equal(z[:, :7], exact.sample(solver, x, key, 7, mask=mask))
    mu = exact.marginals(solver, x, mask=mask)
    assert ((z.mean(1) - mu).abs() <= 5 * (mu * (1 - mu) / count).sqrt() + 1e-12).all()
    assert (z.sum(-2) == 1).all()
    if solver.single_root:
        assert (z.diagonal(dim1=-2, dim2=-1).sum(-1) == 1).all()


@each_solver
def test_bad_rows_have_a_reason(solver: aimle.Arborescence):
    x = seeded(2, 2)
    if x.is_cpu:  # a GPU is not waited for
        with pytest.raises(ValueError, match="connected"):
            exact.marginals(solver, x, mask=~torch.eye(2, dtype=torch.bool))
    assert exact.marginals(solver, x * torch.nan).isnan().all()
