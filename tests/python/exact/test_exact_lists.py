"""Lists of structures and samples of them: complete, and with the right frequencies."""

import math

import pytest
import torch
from exact_cases import Structure, each_structure, seeded
from torch import Tensor

import aimle
from aimle import exact

pytestmark = pytest.mark.usefixtures("everything_on_the_device")


# ---- Lists ---------------------------------------------------------------------------------------


def rows(z: Tensor) -> set[tuple]:
    return {tuple(row) for row in z.flatten(1).int().tolist()}


@each_structure
def test_structures_are_all_of_them(structure: Structure):
    solver, n, build = structure
    z = build()
    listed = exact.structures(solver, torch.zeros(2, n))
    assert listed.dtype == torch.uint8
    assert listed.shape == z.shape
    assert rows(listed) == rows(z)


@each_structure
def test_the_expectation_of_z_is_the_marginals(structure: Structure):
    solver, n, _ = structure
    x = seeded(2, 3, n)
    torch.testing.assert_close(exact.expected(solver, x, lambda z: z), exact.marginals(solver, x))
    torch.testing.assert_close(exact.probabilities(solver, x).sum(-1), torch.ones(2, 3).double())


def entangled(z: Tensor) -> Tensor:
    """A function of all of z, on its last dimension."""
    weights = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype)
    return torch.sin((z * weights).sum(-1)) + torch.where(z > 0, 1.3, 0.9).prod(-1)


@each_structure
def test_the_gradient_of_any_function(structure: Structure):
    solver, n, _ = structure
    x, h = seeded(2, n), 1e-5
    gradient = exact.exact_gradient(solver, x, entangled)
    assert gradient.shape == x.shape
    for j in range(n):
        shift = torch.zeros(n, dtype=x.dtype)
        shift[j] = h
        ahead = exact.expected(solver, x + shift, entangled)
        behind = exact.expected(solver, x - shift, entangled)
        torch.testing.assert_close(gradient[:, j], (ahead - behind) / (2 * h), rtol=1e-6, atol=1e-9)


@each_structure
def test_the_gradient_of_a_square_by_list_and_in_closed_form(structure: Structure):
    solver, n, _ = structure
    x, b = seeded(3, n), seeded(3, n, seed=1)
    listed = exact.exact_gradient(solver, x, lambda z: (z - b.unsqueeze(1)).square().sum(-1))
    leaf = x.clone().requires_grad_()
    (closed,) = torch.autograd.grad(exact.expected_square(solver, leaf, b).sum(), leaf)
    torch.testing.assert_close(listed, closed)
    # Where solutions vary in size the constant of (z - b)^2 = z (1 - 2 b) + b^2 does not cancel.
    along = -2 * b if solver.fixed_size else 1 - 2 * b
    torch.testing.assert_close(closed, exact.covariance(solver, x, along))


@pytest.mark.parametrize("neighbourhood", [4, 8])
def test_grid_paths(neighbourhood: int):
    solver = aimle.GridPath(neighbourhood)
    x, v = seeded(2, 3, 4).requires_grad_(), seeded(2, 3, 4, seed=1)
    z = exact.structures(solver, x).double()
    p = torch.softmax(-torch.einsum("bij,nij->bn", x, z), -1)
    mu = exact.marginals(solver, x)
    torch.testing.assert_close(mu, torch.einsum("bn,nij->bij", p, z))
    torch.testing.assert_close(mu[:, 0, 0], torch.ones(2).double())
    (of_log_partition,) = torch.autograd.grad(exact.log_partition(solver, x).sum(), x)
    torch.testing.assert_close(of_log_partition, -mu)
    (of_mu,) = torch.autograd.grad((mu * v).sum(), x)
    torch.testing.assert_close(of_mu, -exact.covariance(solver, x, v))
    count = 5000
    drawn = exact.sample(solver, x.detach(), torch.tensor([1, 2]), count)
    assert drawn.shape == (2, count, 3, 4)
    assert rows(drawn.flatten(0, 1)) <= rows(z)
    error = 5 * (mu * (1 - mu) / count).clamp_min(0).sqrt() + 1e-9
    assert ((drawn.mean(1) - mu).abs() <= error).all()
    costs = x.detach() + 3
    best = exact.structures(solver, x)[(costs.unsqueeze(1) * z).sum((-1, -2)).argmin(-1)]
    assert torch.equal(best.double(), solver(costs))


def test_grid_paths_around_walls():
    costs = seeded(2, 3, 3)
    costs[0, 1, 1] = math.inf
    mask = torch.ones(3, 3, dtype=torch.bool)
    mask[1, 1] = False
    solver = aimle.GridPath(4)
    masked = exact.marginals(solver, seeded(2, 3, 3), mask=mask)
    assert (masked[:, 1, 1] == 0).all()
    torch.testing.assert_close(exact.marginals(solver, costs)[0], masked[0])
    mask[0, 0] = False
    with pytest.raises(ValueError, match="leave none"):
        exact.marginals(solver, costs, mask=mask)


def test_marginals_of_a_batch_as_long_as_the_list():
    """The shape [2, 2, 2] is both [*batch, N] and [N, *instance]."""
    solver, x = aimle.Assignment(), seeded(2, 2, 2, 2)
    expected = [exact.marginals(solver, row) for row in x.flatten(0, 1)]
    torch.testing.assert_close(exact.marginals(solver, x), torch.stack(expected).view(2, 2, 2, 2))


@pytest.mark.parametrize("function", ["log_partition", "marginals", "covariance", "sample"])
def test_listed_solvers_take_no_k(function: str):
    costs = torch.ones(2, 2)
    more = {"covariance": (costs,), "sample": (torch.tensor([1, 2]),)}.get(function, ())
    with pytest.raises(TypeError, match="for TopK only"):
        getattr(exact, function)(aimle.GridPath(), costs, *more, k=3)


LISTED = ["log_partition", "marginals", "covariance", "entropy", "sample", "probabilities"]


@pytest.mark.parametrize("function", LISTED)
def test_bad_arguments_of_listed_solvers_are_named(function: str):
    scores, v, key = torch.ones(2, 3, 3), torch.ones(2, 3, 3), torch.tensor([1, 2])
    more = {"covariance": {"v": v}, "sample": {"key": key}}.get(function, {})
    for changes, error, words in (
        ({"scores": scores.long()}, TypeError, "floating-point type but got .*int64"),
        ({"mask": scores}, TypeError, "a mask of bool but got .*float32"),
        ({"mask": [True]}, TypeError, "mask to be a tensor but got list"),
        ({"mask": torch.ones(4, 3).bool()}, ValueError, r"of scores, \[2, 3, 3\], but .*\[4, 3\]"),
    ):
        with pytest.raises(error, match=words):
            getattr(exact, function)(aimle.Assignment(), **{"scores": scores, **changes}, **more)


def test_bad_data_and_directions_of_listed_solvers_are_named():
    solver, costs = aimle.GraphPath([(0, 1), (1, 2), (0, 2)], 0, 2), torch.ones(2, 3)
    for data in (solver.data.float(), solver.data.expand(2, -1)):
        with pytest.raises(ValueError, match=r"data of int64 \[length\], the same for all"):
            exact.marginals(solver, costs, data=data)
    with pytest.raises(ValueError, match=r"v of the shape of scores, \[2, 3\], but got \[3\]"):
        exact.covariance(solver, costs, costs[0])


def test_lists_that_are_too_long_are_refused():
    for solver, x, words in (
        (aimle.TopK(30), torch.ones(60), "at most 1000000"),
        (aimle.SpanningTree(8), torch.ones(28), "vertices=8"),
        (aimle.GridPath(), torch.ones(5, 4), "4 x 4"),
    ):
        with pytest.raises(ValueError, match=words):
            exact.structures(solver, x)
    with pytest.raises(ValueError, match=r"\[N, ...\] or \[\*batch, N\]"):
        exact.expected(aimle.Argmax(), torch.ones(3), lambda z: z.sum())


# ---- Samples -------------------------------------------------------------------------------------


@each_structure
def test_samples_have_the_marginals(structure: Structure):
    solver, n, _ = structure
    x = seeded(2, 3, n)
    count = 20_000
    z = exact.sample(solver, x, torch.tensor([5, 6]), count)
    assert z.shape == (2, 3, count, n)
    assert ((z == 0) | (z == 1)).all()
    mu = exact.marginals(solver, x)
    error = (z.mean(-2) - mu).abs()
    assert (error <= 5 * (mu * (1 - mu) / count).sqrt() + 1e-12).all()


@each_structure
def test_samples_are_a_function_of_the_key(structure: Structure):
    solver, n, _ = structure
    x, key = seeded(4, n), torch.tensor([5, 6])
    z = exact.sample(solver, x, key, 7)
    assert torch.equal(z, exact.sample(solver, x, key, 7))
    assert torch.equal(z[:, :3], exact.sample(solver, x, key, 3))
    assert torch.equal(z[:2], exact.sample(solver, x[:2], key, 7))
    assert torch.equal(z[:, 0], exact.sample(solver, x, key))
    assert not torch.equal(z, exact.sample(solver, x, torch.tensor([5, 7]), 7))
    assert not exact.sample(solver, x.requires_grad_(), key).requires_grad
