"""The distribution over lattice paths on the GPU agrees with the CPU's."""

import pytest
import torch
from torch import Tensor

import aimle
from aimle import exact

pytestmark = pytest.mark.usefixtures("gpu")

LATTICES = {
    "tiny": (aimle.LatticePath(), (1, 1)),
    "in a warp": (aimle.LatticePath(), (7, 9)),
    "in a block": (aimle.LatticePath("straight"), (40, 30)),
    "beyond shared memory": (aimle.LatticePath(), (120, 150)),
    "by rows": (aimle.LatticePath("diagonal"), (60, 20)),
    "moves": (aimle.LatticeMoves(), (9, 8, 3)),
    "many moves": (aimle.LatticeMoves("diagonal"), (90, 70, 3)),
}
each_lattice = pytest.mark.parametrize(("solver", "shape"), LATTICES.values(), ids=LATTICES)


def draw(shape: tuple[int, ...], seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def ragged(count: int, shape: tuple[int, ...]) -> Tensor:
    """A smaller lattice for every row; as high as wide at least."""
    generator = torch.Generator().manual_seed(3)
    mask = torch.zeros(count, *shape, dtype=torch.bool)
    for row in range(count):
        width = int(torch.randint(1, shape[1] + 1, (), generator=generator))
        height = int(torch.randint(min(width, shape[0]), shape[0] + 1, (), generator=generator))
        mask[row, :height, :width] = True
    return mask


@each_lattice
@pytest.mark.parametrize("scale", [0.5, 30.0, 400.0])
def test_distributions_agree(solver: aimle.Solver, shape: tuple[int, ...], scale: float):
    count = 4 if shape[0] > 50 else 40
    x, v = scale * draw((count, *shape), 0), draw((count, *shape), 1)
    for mask in (None, ragged(count, shape)):
        results = []
        for device in ("cpu", "cuda"):
            allowed = None if mask is None else mask.to(device)
            scores, along = x.to(device), v.to(device)
            results.append(
                [
                    exact.log_partition(solver, scores, mask=allowed).cpu(),
                    exact.marginals(solver, scores, mask=allowed).cpu(),
                    exact.covariance(solver, scores, along, mask=allowed).cpu(),
                ]
            )
        for on_cpu, on_gpu in zip(*results, strict=True):
            torch.testing.assert_close(on_gpu, on_cpu, rtol=1e-8, atol=1e-9)


@each_lattice
def test_samples_are_the_same(solver: aimle.Solver, shape: tuple[int, ...]):
    """But for a uniform number that falls between two roundings of one probability."""
    count = 3 if shape[0] > 50 else 20
    x, key, mask = draw((count, *shape), 2), torch.tensor([5, 6]), ragged(count, shape)
    for allowed in (None, mask):
        on_gpu = None if allowed is None else allowed.cuda()
        a = exact.sample(solver, x, key, 30, mask=allowed)
        b = exact.sample(solver, x.cuda(), key.cuda(), 30, mask=on_gpu).cpu()
        assert (a != b).flatten(2).any(-1).sum() <= 1


@each_lattice
def test_rows_are_refused_alike(solver: aimle.Solver, shape: tuple[int, ...]):
    x = draw((4, *shape), 4)
    x[1].view(-1)[-1] = torch.nan
    x[2].view(-1)[-1] = torch.inf
    x[3] = -torch.inf
    settings = (solver.text, None, None, 0)
    on_cpu = torch.ops.aimle.marginals.default(x, *settings)
    on_gpu = torch.ops.aimle.marginals.default(x.cuda(), *settings).cpu()
    torch.testing.assert_close(on_gpu, on_cpu, rtol=1e-8, atol=1e-9, equal_nan=True)
