"""Assignments against SciPy, and their relaxation."""

import itertools

import numpy as np
import oracles
import pytest
import torch

import aimle


def seeded(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("shape", [(1, 1), (2, 9), (16, 16), (33, 20), (64, 64), (100, 130)])
def test_sizes_from_tiny_to_large(shape: tuple[int, int], device: torch.device):
    scores = seeded(8, *shape).to(device)
    expected = np.stack([oracles.assignment(row) for row in scores.cpu().numpy()])
    assert torch.equal(aimle.Assignment()(scores).cpu(), torch.from_numpy(expected))


def test_masked_assignments(device: torch.device):
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(400, 5, 6, generator=generator)
    mask = torch.rand(400, 5, 6, generator=generator) < 0.45
    z, status = aimle.solve(
        aimle.Assignment(), scores.to(device), mask=mask.to(device), return_status=True
    )
    hidden = scores.masked_fill(~mask, -torch.inf).to(device)
    assert torch.equal(aimle.solve(aimle.Assignment(), hidden, return_status=True)[1], status)
    for row in range(400):
        try:
            expected = oracles.assignment(scores[row].numpy(), mask[row].numpy())
        except ValueError:
            assert status[row] == aimle.Status.TOO_FEW_ENTRIES
            assert z[row].isnan().all()
        else:
            assert status[row] == aimle.Status.OK
            assert torch.equal(z[row].cpu(), torch.from_numpy(expected))
    assert set(status.tolist()) == {aimle.Status.OK, aimle.Status.TOO_FEW_ENTRIES}


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_ties_go_to_the_lowest_column_of_the_first_row(
    shape: tuple[int, int], device: torch.device
):
    generator = torch.Generator().manual_seed(4)
    scores = torch.randint(0, 3, (300, *shape), generator=generator).float()
    structures = aimle.exact.structures(aimle.Assignment(), scores[0])
    # They are listed in the order of the tie rule, so the first of the best is the answer.
    best = (scores.flatten(1) @ structures.flatten(1).float().mT).argmax(-1)
    assert torch.equal(aimle.Assignment()(scores.to(device)).cpu(), structures[best].float())


def test_the_sense_of_a_layer_is_that_of_scipy():
    costs = seeded(20, 6, 6)
    layer = aimle.AIMLE(aimle.Assignment(), sense="min").eval()
    expected = np.stack([oracles.assignment(-row) for row in costs.numpy()])
    assert torch.equal(layer(costs).squeeze(1), torch.from_numpy(expected))


def test_the_distribution_is_listed_where_it_is_small():
    assert not aimle.Assignment().has_exact
    marginals = aimle.exact.marginals(aimle.Assignment(), seeded(2, 3, 4))
    torch.testing.assert_close(marginals.sum(-1), torch.ones(2, 3, dtype=torch.float64))
    with pytest.raises(ValueError, match="more of 11 rows and 11 columns"):
        aimle.exact.marginals(aimle.Assignment(), seeded(11, 11))


def test_sinkhorn_has_the_sums_of_an_assignment():
    for n, m in itertools.product((1, 3, 5), repeat=2):
        p = aimle.sinkhorn(seeded(2, n, m), 0.5, 300)
        rows, columns = p.sum(-1), p.sum(-2)
        short, long = (rows, columns) if n <= m else (columns, rows)
        torch.testing.assert_close(short, torch.ones_like(short))
        assert (long < 1 + 1e-6).all()


def test_sinkhorn_maximises_scores_and_entropy():
    """Against the exact solution of two rows: p = [[q, 1 - q], [1 - q, q]], q = s(gap / 2t)."""
    theta, temperature = seeded(7, 2, 2), 0.3
    gap = theta[:, 0, 0] + theta[:, 1, 1] - theta[:, 0, 1] - theta[:, 1, 0]
    q = torch.sigmoid(gap / (2 * temperature))
    p = aimle.sinkhorn(theta, temperature, 500)
    torch.testing.assert_close(p[:, 0, 0], q, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(p[:, 1, 0], 1 - q, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_sinkhorn_goes_to_the_assignment(shape: tuple[int, int]):
    theta = seeded(10, *shape)
    best = (theta * aimle.Assignment()(theta)).sum((-2, -1))
    for temperature in (1.0, 0.1, 0.02):
        reached = (theta * aimle.sinkhorn(theta, temperature, 2000)).sum((-2, -1))
        entropy = min(shape) * np.log(max(shape))  # no p has more
        assert (reached < best + 1e-3).all()
        assert (reached > best - temperature * entropy - 1e-3).all()


def test_sinkhorn_is_differentiable_under_masks():
    theta = seeded(4, 5).requires_grad_()
    mask = torch.ones(4, 5, dtype=torch.bool)
    mask[1, 2] = False
    mask[3] = mask[:, 4] = False
    p = aimle.sinkhorn(theta, 1.0, 20, mask=mask)
    assert (p[~mask] == 0).all()
    torch.testing.assert_close(p[:3].sum(-1), torch.ones(3, dtype=torch.float64))
    assert torch.autograd.gradcheck(
        lambda x: aimle.sinkhorn(x, 1.0, 20, mask=mask), theta, check_batched_grad=False
    )


@pytest.mark.parametrize(("n", "m"), list(itertools.product((2, 3, 4), repeat=2)))
def test_sinkhorn_leaves_out_masked_rows_and_columns(n: int, m: int):
    theta, inner = seeded(4, 4), seeded(n, m)
    mask = torch.zeros(4, 4, dtype=torch.bool)
    rows, columns = torch.randperm(4)[:n, None], torch.randperm(4)[:m]
    mask[rows, columns] = True
    theta[~mask] = torch.nan
    theta[rows, columns] = inner
    theta = theta[None].repeat(2, 1, 1).requires_grad_()
    p = aimle.sinkhorn(theta, 0.7, 400, mask=torch.stack([mask, torch.zeros_like(mask)]))
    expected = torch.zeros(2, 4, 4, dtype=torch.float64)
    expected[0, rows, columns] = aimle.sinkhorn(inner, 0.7, 400)
    torch.testing.assert_close(p, expected)
    (gradient,) = torch.autograd.grad(p.square().sum(), theta)
    assert gradient.isfinite().all()


def test_sinkhorn_of_nothing_and_nan():
    for shape in ((0, 3, 4), (2, 0, 4), (2, 3, 0)):
        assert aimle.sinkhorn(torch.zeros(shape)).shape == shape
    theta = seeded(2, 3, 3)
    theta[0, 1, 1] = torch.nan
    p = aimle.sinkhorn(theta, mask=torch.ones(3, dtype=torch.bool))
    assert p[0].isnan().all()
    torch.testing.assert_close(p[1], aimle.sinkhorn(theta[1]))


def test_sinkhorn_says_what_it_expects():
    for call, message in (
        (lambda: aimle.sinkhorn(seeded(3)), "at least 2 dimensions but got 1"),
        (lambda: aimle.sinkhorn(seeded(3, 3), 0.0), "temperature > 0 but got 0"),
        (lambda: aimle.sinkhorn(seeded(3, 3), 1.0, 0), "iterations >= 1 but got iterations=0"),
        (
            lambda: aimle.sinkhorn(seeded(3, 3), mask=torch.ones(2, dtype=torch.bool)),
            r"broadcastable to the shape of theta, \[3, 3\], but got shape \[2\]",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()
