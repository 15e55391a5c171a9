"""The distribution over lattice paths, against lists, multiprecision and finite differences."""

import itertools

import mpmath
import pytest
import torch
from exact_cases import assert_equal_to_multiprecision, seeded
from torch import Tensor

import aimle
from aimle import exact

pytestmark = pytest.mark.usefixtures("everything_on_the_device")

LATTICES = {
    "all": (aimle.LatticePath(), (4, 3)),
    "straight": (aimle.LatticePath("straight"), (3, 5)),
    "diagonal": (aimle.LatticePath("diagonal"), (6, 3)),
    "moves": (aimle.LatticeMoves(), (3, 3, 3)),
    "diagonal moves": (aimle.LatticeMoves("diagonal"), (5, 3, 3)),
    "one cell": (aimle.LatticePath(), (1, 1)),
    "one row": (aimle.LatticeMoves(), (1, 4, 3)),
}
each_lattice = pytest.mark.parametrize(("solver", "shape"), LATTICES.values(), ids=LATTICES)


def paths(solver: aimle.Solver, shape: tuple[int, ...]) -> Tensor:
    """Every sequence of moves that ends in the corner, as z [N, *shape]."""
    steps = {0: (1, 1), 1: (1, 0), 2: (0, 1)}
    allowed = {"all": (0, 1, 2), "straight": (1, 2), "diagonal": (0, 1)}[solver.moves]
    end = (shape[0] - 1, shape[1] - 1)
    found = []
    for length in range(max(end), sum(end) + 1):
        for moves in itertools.product(allowed, repeat=length):
            z, at = torch.zeros(shape, dtype=torch.float64), (0, 0)
            if len(shape) == 2:
                z[at] = 1
            for move in moves:
                at = (at[0] + steps[move][0], at[1] + steps[move][1])
                if at[0] > end[0] or at[1] > end[1]:
                    break
                z[at if len(shape) == 2 else (*at, move)] = 1
            else:
                if at == end:
                    found.append(z)
    return torch.stack(found)


@each_lattice
def test_structures_are_all_paths(solver: aimle.Solver, shape: tuple[int, ...]):
    z, listed = paths(solver, shape), exact.structures(solver, torch.zeros(2, *shape))
    assert listed.shape == z.shape
    as_rows = lambda z: {tuple(row) for row in z.flatten(1).int().tolist()}  # noqa: E731
    assert as_rows(listed) == as_rows(z)
    assert len(as_rows(z)) == len(z)


@each_lattice
def test_values_are_those_of_multiprecision(solver: aimle.Solver, shape: tuple[int, ...]):
    assert_equal_to_multiprecision(solver, paths(solver, shape))


@each_lattice
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_values_are_those_of_the_list(solver: aimle.Solver, shape: tuple[int, ...], scale: float):
    z = paths(solver, shape).flatten(1)
    x, v = seeded(20, *shape, scale=scale), seeded(20, *shape, seed=1)
    exponents = x.flatten(1) @ z.T
    p = exponents.softmax(-1)
    along = v.flatten(1) @ z.T
    cov = (p * (along - (p * along).sum(-1, keepdim=True))) @ z
    torch.testing.assert_close(exact.log_partition(solver, x), exponents.logsumexp(-1))
    torch.testing.assert_close(
        exact.marginals(solver, x), (p @ z).view_as(x), rtol=1e-10, atol=1e-14
    )
    torch.testing.assert_close(
        exact.covariance(solver, x, v), cov.view_as(x), rtol=1e-9, atol=1e-12
    )
    torch.testing.assert_close(exact.expected(solver, x, lambda z: z), exact.marginals(solver, x))


@each_lattice
def test_gradients(solver: aimle.Solver, shape: tuple[int, ...]):
    x, v = seeded(2, *shape).requires_grad_(), seeded(2, *shape, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: exact.log_partition(solver, x), x)
    assert torch.autograd.gradgradcheck(lambda x: exact.log_partition(solver, x), x)
    assert torch.autograd.gradcheck(lambda x: exact.marginals(solver, x), x)
    assert torch.autograd.gradcheck(lambda v: exact.covariance(solver, x.detach(), v), v)


@each_lattice
def test_samples_have_the_marginals(solver: aimle.Solver, shape: tuple[int, ...]):
    x, count = seeded(2, 3, *shape), 20_000
    z = exact.sample(solver, x, torch.tensor([5, 6]), count)
    assert z.shape == (2, 3, count, *shape)
    mu = exact.marginals(solver, x)
    error = 5 * (mu * (1 - mu) / count).sqrt() + 1e-3
    assert ((z.mean(2) - mu).abs() <= error).all()
    known = {tuple(row) for row in paths(solver, shape).flatten(1).int().tolist()}
    drawn = z[0, 0, :200].flatten(1).int().tolist()
    assert {tuple(row) for row in drawn} <= known


@pytest.mark.parametrize("solver", [aimle.LatticePath(), aimle.LatticeMoves("straight")], ids=str)
def test_ragged_lattices_are_those_of_their_own_size(solver: aimle.Solver):
    moves = (3,) * isinstance(solver, aimle.LatticeMoves)
    x, v = seeded(4, 5, 6, *moves), seeded(4, 5, 6, *moves, seed=1)
    sizes = [(5, 6), (3, 6), (2, 2), (1, 1)]
    mask = torch.zeros(x.shape, dtype=torch.bool)
    for row, (height, width) in enumerate(sizes):
        mask[row, :height, :width] = True
    x, v = x.masked_fill(~mask, torch.nan), v.masked_fill(~mask, torch.nan)
    a = exact.log_partition(solver, x, mask=mask)
    mu = exact.marginals(solver, x, mask=mask)
    cov = exact.covariance(solver, x, v, mask=mask)
    z, best = exact.sample(solver, x, torch.tensor([1, 2]), 3, mask=mask), solver(x, mask=mask)
    for row, (height, width) in enumerate(sizes):
        part = (row, slice(height), slice(width))
        torch.testing.assert_close(a[row], exact.log_partition(solver, x[part]))
        torch.testing.assert_close(mu[part], exact.marginals(solver, x[part]))
        torch.testing.assert_close(cov[part], exact.covariance(solver, x[part], v[part]))
        assert torch.equal(best[part], solver(x[part]))
        for outside in (mu[row], cov[row], best[row], *z[row]):
            assert (outside[~mask[row]] == 0).all()


def test_a_large_lattice_is_that_of_multiprecision():
    height, width = 25, 20
    generator = torch.Generator("cpu").manual_seed(2)
    x = 60 * torch.rand(height, width, generator=generator, dtype=torch.float64, device="cpu") - 30
    with mpmath.workdps(60):
        weight = [[mpmath.exp(score) for score in row] for row in x.tolist()]
        up_to: dict[tuple[int, int], object] = {}
        beyond: dict[tuple[int, int], object] = {}
        cells = list(itertools.product(range(height), range(width)))
        for t, u in cells:
            ways = [up_to.get(c, 0) for c in ((t - 1, u - 1), (t - 1, u), (t, u - 1))]
            up_to[t, u] = weight[t][u] * (sum(ways) if (t, u) != (0, 0) else 1)
        for t, u in reversed(cells):
            ways = [
                weight[r][c] * beyond[r, c]
                for r, c in ((t + 1, u + 1), (t + 1, u), (t, u + 1))
                if r < height and c < width
            ]
            beyond[t, u] = sum(ways) if ways else mpmath.mpf(1)
        total = up_to[height - 1, width - 1]
        log_z = float(mpmath.log(total))
        mu = [float(up_to[c] * beyond[c] / total) for c in cells]
    x = x.to(torch.get_default_device())
    solver = aimle.LatticePath()
    assert exact.log_partition(solver, x).item() == pytest.approx(log_z, rel=1e-14)
    expected = torch.tensor(mu, dtype=torch.float64).view(height, width)
    torch.testing.assert_close(exact.marginals(solver, x), expected, rtol=1e-13, atol=0)


def test_rows_without_a_path_are_refused():
    x = seeded(2, 3, 3)
    wall = x.clone()
    wall[1, 2, 2] = -torch.inf
    if x.is_cpu:  # a GPU is not waited for
        with pytest.raises(ValueError, match=r"row 1: .*no connected solution"):
            exact.marginals(aimle.LatticePath(), wall)
        with pytest.raises(ValueError, match="row 0"):
            exact.marginals(aimle.LatticePath(), x, mask=torch.zeros(3, 3, dtype=torch.bool))
    with pytest.raises(ValueError, match="at least as many rows as columns"):
        exact.structures(aimle.LatticePath("diagonal"), torch.zeros(2, 3))
    with pytest.raises(ValueError, match="at most 1000000"):
        exact.structures(aimle.LatticePath(), torch.zeros(20, 20))
    x[0, 1, 1] = torch.inf
    assert exact.marginals(aimle.LatticePath(), x)[0].isnan().all()
