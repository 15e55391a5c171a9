"""Exact distributions: error messages, and the ops under PyTorch's own checks."""

import math
from collections.abc import Callable

import pytest
import torch
from exact_cases import Structure, each_structure, seeded
from torch import Tensor
from torch.library import opcheck

import aimle
from aimle import exact

pytestmark = [
    pytest.mark.usefixtures("everything_on_the_device"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
]

ops = torch.ops.aimle


# ---- Misuse --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: exact.marginals("topk", x), TypeError, "aimle.TopK.*str"),
        (lambda x: exact.marginals(aimle.TopK(9), x), ValueError, "k <= n.*k=9, n=6"),
        (lambda x: exact.marginals(aimle.TopK(2), x, k=2.0), TypeError, "k to be an int.*float"),
        (lambda x: exact.marginals(aimle.Argmax(), x, k=2), TypeError, "Argmax takes no k"),
        (lambda x: exact.marginals(aimle.Argmax(), [1.0]), TypeError, "scores.*tensor.*list"),
        (lambda x: exact.marginals(aimle.Argmax(), x.long()), TypeError, "float32.*int64"),
        (lambda x: exact.marginals(aimle.TopK(2), x * -math.inf), ValueError, "row 0.*k=2.*0 of 6"),
        (
            lambda x: exact.covariance(aimle.TopK(2), x, x[0]),
            ValueError,
            "v of the shape of scores",
        ),
        (lambda x: exact.sample(aimle.TopK(2), x, x), TypeError, "key of int64"),
        (
            lambda x: exact.sample(aimle.TopK(2), x, torch.tensor([1, 2]), 0),
            ValueError,
            "nb_samples >= 1",
        ),
        (lambda x: ops.marginals(x, "grid_path"), ValueError, "expected solver"),
        (lambda x: ops.marginals(x, "topk"), ValueError, "needs k"),
    ],
)
def test_misuse_is_named(call: Callable, error: type[Exception], words: str, device: torch.device):
    if device.type == "cuda" and words.startswith("row"):
        pytest.skip("what is found in a row raises on the CPU alone")
    with pytest.raises(error, match=words):
        call(torch.ones(3, 6))


def test_a_sample_without_a_key_follows_the_generator(device: torch.device):
    draws = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        draws.append(exact.sample(aimle.TopK(2), torch.zeros(20, 9, device=device)))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_a_grid_without_a_distribution_gives_nan(value: float):
    costs = seeded(2, 3, 3)
    costs[1, 1, 1] = value
    solver = aimle.GridPath()
    for got in (
        exact.marginals(solver, costs),
        exact.covariance(solver, costs, costs),
        exact.sample(solver, costs, torch.tensor([1, 2])),
    ):
        assert got[0].isfinite().all()
        assert got[1].isnan().all()


def test_a_row_of_nan_gives_nan():
    x = seeded(3, 6)
    x[1, 2] = math.nan
    mu = exact.marginals(aimle.TopK(2), x)
    assert mu[1].isnan().all()
    assert mu[0].isfinite().all()
    assert mu[2].isfinite().all()


# ---- The ops under PyTorch's own checks ----------------------------------------------------------


@each_structure
@pytest.mark.parametrize("with_gradient", [False, True])
def test_opcheck(structure: Structure, with_gradient: bool):
    solver, n, _ = structure
    settings = (solver.text,)
    x = seeded(3, n).requires_grad_(with_gradient)
    key = torch.tensor([1, 2])
    data = None if solver.data is None else solver.data.tolist()
    opcheck(ops.structures.default, (*settings, [n], data))
    # The covariance's own gradient in the scores is refused, so only v takes one.
    for op, arguments in (
        (ops.log_partition.default, (x,)),
        (ops.marginals.default, (x,)),
        (ops.covariance.default, (x.detach(), seeded(3, n).requires_grad_(with_gradient))),
        (ops.exact_sample.default, (x, key, 4)),
    ):
        mask = torch.ones(n) > 0
        row_data = None if data is None else torch.tensor(data)
        opcheck(op, (*arguments, *settings), {"mask": mask, "row_data": row_data})


@each_structure
def test_compiled_values_and_gradients_equal_eager(structure: Structure):
    solver, n, _ = structure

    def loss(x: Tensor) -> Tensor:
        return exact.log_partition(solver, x).sum() + exact.marginals(solver, x).square().sum()

    torch._dynamo.reset()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager", dynamic=True)
    for batch in (3, 5):
        x = seeded(batch, n).requires_grad_()
        (expected,) = torch.autograd.grad(loss(x), x)
        (got,) = torch.autograd.grad(compiled(x), x)
        torch.testing.assert_close(got, expected)
