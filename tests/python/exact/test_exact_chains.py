"""The distribution over label sequences against the list of them and multiprecision."""

import itertools

import mpmath
import pytest
import torch
from exact_cases import assert_equal_to_multiprecision, seeded
from torch import Tensor

import aimle
from aimle import exact

pytestmark = pytest.mark.usefixtures("everything_on_the_device")

SOLVER = aimle.Chain()
STEPS, LABELS = 3, 3
SHAPE = (STEPS, LABELS, LABELS)


def sequences() -> Tensor:
    """Every structure, [N, *SHAPE]."""
    found = []
    for labels in itertools.product(range(LABELS), repeat=STEPS + 1):
        z = torch.zeros(SHAPE, dtype=torch.float64)
        for t, (i, j) in enumerate(itertools.pairwise(labels)):
            z[t, i, j] = 1
        found.append(z)
    return torch.stack(found)


@pytest.mark.parametrize("scale", [1.0, 30.0, 300.0])
def test_values_are_those_of_the_list(scale: float):
    z = sequences().flatten(1)
    x, v = seeded(20, *SHAPE, scale=scale), seeded(20, *SHAPE, seed=1)
    exponents = x.flatten(1) @ z.T
    p = exponents.softmax(-1)
    mu = (p @ z).reshape(x.shape)
    along = v.flatten(1) @ z.T
    cov = ((p * (along - (p * along).sum(-1, keepdim=True))) @ z).reshape(x.shape)
    entropy = torch.special.entr(p).sum(-1)
    torch.testing.assert_close(exact.log_partition(SOLVER, x), exponents.logsumexp(-1))
    torch.testing.assert_close(exact.marginals(SOLVER, x), mu, rtol=1e-9, atol=1e-14)
    torch.testing.assert_close(exact.covariance(SOLVER, x, v), cov, rtol=1e-8, atol=1e-12)
    torch.testing.assert_close(exact.entropy(SOLVER, x), entropy, rtol=1e-9, atol=3e-10)


def test_values_are_those_of_multiprecision():
    assert_equal_to_multiprecision(SOLVER, sequences())


def test_structures_are_all_of_them():
    listed = exact.structures(SOLVER, torch.zeros(2, *SHAPE))
    assert torch.equal(listed.double(), sequences())
    with pytest.raises(ValueError, match=r"at most 1000000 structures .* length=31, labels=3"):
        exact.structures(SOLVER, torch.zeros(30, 3, 3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_other_dtypes_are_the_same_numbers_rounded(dtype: torch.dtype):
    x, v = seeded(4, 5, *SHAPE).to(dtype), seeded(4, 5, *SHAPE, seed=1).to(dtype)
    for function, extra in (
        (exact.log_partition, ()),
        (exact.marginals, ()),
        (exact.entropy, ()),
        (exact.covariance, (v,)),
    ):
        got = function(SOLVER, x, *extra)
        assert got.dtype == dtype
        expected = function(SOLVER, x.double(), *(t.double() for t in extra))
        torch.testing.assert_close(got, expected.to(dtype))


def test_a_long_chain_is_that_of_multiprecision():
    """The sums with 60 digits, for scores of +-30 and beyond."""
    steps, labels = 12, 4
    x = (seeded(steps, labels, labels, scale=25.0)).clamp(-60, 60)
    with mpmath.workdps(60):
        w = [[[mpmath.exp(mpmath.mpf(s)) for s in row] for row in step] for step in x.tolist()]
        ahead, behind = [[mpmath.mpf(1)] * labels], [[mpmath.mpf(1)] * labels]
        for t in range(steps):
            ahead.append(
                [sum(ahead[t][i] * w[t][i][j] for i in range(labels)) for j in range(labels)]
            )
        for t in reversed(range(steps)):
            last = behind[0]
            behind.insert(
                0, [sum(w[t][i][j] * last[j] for j in range(labels)) for i in range(labels)]
            )
        total = sum(ahead[-1])
        log_z = float(mpmath.log(total))
        mu = [
            [
                [float(ahead[t][i] * w[t][i][j] * behind[t + 1][j] / total) for j in range(labels)]
                for i in range(labels)
            ]
            for t in range(steps)
        ]
    assert exact.log_partition(SOLVER, x).item() == pytest.approx(log_z, rel=1e-14)
    expected = torch.tensor(mu, dtype=torch.float64)
    torch.testing.assert_close(exact.marginals(SOLVER, x), expected, rtol=1e-11, atol=1e-300)


def test_gradients():
    x, v = seeded(2, *SHAPE).requires_grad_(), seeded(2, *SHAPE, seed=1).requires_grad_()
    mask = aimle.chain_mask(torch.tensor([2, 4]), STEPS + 1)
    for settings in ({}, {"mask": mask}):
        assert torch.autograd.gradcheck(lambda x: exact.log_partition(SOLVER, x, **settings), x)  # noqa: B023
        assert torch.autograd.gradgradcheck(lambda x: exact.log_partition(SOLVER, x, **settings), x)  # noqa: B023
        assert torch.autograd.gradcheck(lambda x: exact.marginals(SOLVER, x, **settings), x)  # noqa: B023
        assert torch.autograd.gradcheck(lambda x: exact.entropy(SOLVER, x, **settings), x)  # noqa: B023
    assert torch.autograd.gradcheck(lambda v: exact.covariance(SOLVER, x.detach(), v), v)


def test_the_gradient_of_any_function_is_that_of_the_list():
    x, b = seeded(3, *SHAPE), seeded(3, *SHAPE, seed=1)
    square = lambda z: (z - b.unsqueeze(1)).square().flatten(-3).sum(-1)  # noqa: E731
    torch.testing.assert_close(
        exact.exact_gradient(SOLVER, x, square), -2 * exact.covariance(SOLVER, x, b)
    )
    torch.testing.assert_close(exact.expected(SOLVER, x, lambda z: z), exact.marginals(SOLVER, x))


def test_samples_have_the_marginals_and_are_a_function_of_the_key():
    x, key, count = seeded(2, *SHAPE), torch.tensor([5, 6]), 20_000
    mask = aimle.chain_mask(torch.tensor([4, 3]), STEPS + 1)
    z = exact.sample(SOLVER, x, key, count, mask=mask)
    assert z.shape == (2, count, *SHAPE)
    assert torch.equal(z[:, :7], exact.sample(SOLVER, x, key, 7, mask=mask))
    mu = exact.marginals(SOLVER, x, mask=mask)
    assert ((z.mean(1) - mu).abs() <= 5 * (mu * (1 - mu) / count).sqrt() + 1e-12).all()
    labels = aimle.chain_labels(z)
    assert labels[0].min() >= 0
    assert (labels[1, :, 3] == -1).all()
    assert torch.equal(z[:, :, :2].sum((-1, -2)), torch.ones(2, count, 2).double())


@pytest.mark.parametrize("solver", [aimle.Argmax(), aimle.TopK(2), aimle.GridPath(4)])
def test_the_entropy_of_other_structures_is_that_of_the_list(solver: aimle.Solver):
    x = seeded(3, 2, 3) if isinstance(solver, aimle.GridPath) else seeded(3, 5)
    if not isinstance(solver, aimle.GridPath):
        x[0, 1] = -torch.inf
    p = exact.probabilities(solver, x)
    torch.testing.assert_close(exact.entropy(solver, x), torch.special.entr(p).sum(-1))
