"""Wrong calls of layers: the exception and the text of its message."""

import pytest
import torch
from bad_layers import (
    KEY,
    META,
    Misuse,
    assert_refused,
    backward_with,
    inf,
    nan,
    theta,
    topk,
)
from bad_rows import bools

import aimle

CALLS: dict[str, Misuse] = {
    # theta
    "theta a list": (topk, lambda f: f([1.0, 2.0]), TypeError, ("theta", "tensor", "list")),
    "theta of integers": (
        topk,
        lambda f: f(torch.ones(2, 5, dtype=torch.int64)),
        TypeError,
        ("theta", "floating-point", "torch.int64"),
    ),
    "theta sparse": (
        topk,
        lambda f: f(torch.eye(5).to_sparse()),
        TypeError,
        ("dense theta", "torch.sparse_coo"),
    ),
    "theta nested": (
        topk,
        lambda f: f(torch.nested.as_nested_tensor([torch.ones(2, 5), torch.ones(3, 5)])),
        TypeError,
        ("dense theta", "nested", "mask"),
    ),
    "theta of complex numbers": (
        topk,
        lambda f: f(torch.ones(2, 5, dtype=torch.complex64)),
        TypeError,
        ("theta", "float", "complex64"),
    ),
    "theta of eight bits": (
        topk,
        lambda f: f(torch.ones(2, 5).to(torch.float8_e4m3fn)),
        TypeError,
        ("theta", "float32, float64, bfloat16 or float16", "float8_e4m3fn"),
    ),
    "theta without a batch, of a callable after a projection": (
        lambda: aimle.Identity(torch.sign),
        lambda f: f(torch.ones(5)),
        ValueError,
        ("Identity", "theta [batch, *instance]", "(5,)", "theta.unsqueeze(0)"),
    ),
    "theta without a row, after a projection": (
        lambda: aimle.Identity(aimle.GridPath()),
        lambda f: f(torch.ones(5)),
        ValueError,
        ("Identity", "theta of at least 2 dimensions", "[5]"),
    ),
    "theta a scalar": (
        topk,
        lambda f: f(torch.tensor(1.0)),
        ValueError,
        ("theta", "at least 1 dimension", "[]"),
    ),
    "theta without entries": (topk, lambda f: f(torch.ones(2, 0)), ValueError, ("n >= 1", "n=0")),
    "theta too short for k": (
        topk,
        lambda f: f(torch.ones(4, 2)),
        ValueError,
        ("0 <= k <= n", "k=3", "n=2"),
    ),
    "a row for a grid": (
        lambda: topk(solver=aimle.GridPath()),
        lambda f: f(torch.ones(5)),
        ValueError,
        ("theta", "at least 2 dimensions", "[5]"),
    ),
    "a row of another graph": (
        lambda: topk(solver=aimle.SpanningTree(4)),
        lambda f: f(torch.ones(2, 7)),
        ValueError,
        ("6 (undirected) or 12 (directed)", "n=4", "7"),
    ),
    "a target outside of the grid": (
        lambda: topk(solver=aimle.GridPath(target=(7, 7))),
        lambda f: f(torch.ones(2, 4, 4)),
        ValueError,
        ("target", "4 x 4", "(7, 7)"),
    ),
    "theta without a batch for a callable": (
        lambda: topk(solver=lambda x: x),
        lambda f: f(torch.ones(5)),
        ValueError,
        ("theta", "[batch, *instance]", "(5,)", "theta.unsqueeze(0)"),
    ),
    # mask
    "mask a list": (topk, lambda f: f(theta(), mask=[True]), TypeError, ("mask", "tensor", "list")),
    "mask of numbers": (
        topk,
        lambda f: f(theta(), mask=torch.ones(2, 5)),
        TypeError,
        ("mask", "bool", "float32"),
    ),
    "mask of another shape": (
        topk,
        lambda f: f(theta(), mask=torch.ones(2, 4, dtype=torch.bool)),
        ValueError,
        ("mask", "theta", "[2, 5]", "[2, 4]"),
    ),
    "mask of another device": (
        topk,
        lambda f: f(theta(), mask=torch.ones(2, 5, dtype=torch.bool, device=META)),
        ValueError,
        ("mask", "theta", "cpu", "meta"),
    ),
    "mask of another shape for a callable": (
        lambda: topk(solver=aimle.TopK(3).__call__),
        lambda f: f(theta(), mask=torch.ones(2, 4, dtype=torch.bool)),
        ValueError,
        ("mask", "theta", "[2, 5]", "[2, 4]"),
    ),
    "mask of numbers for a callable": (
        lambda: topk(solver=aimle.TopK(3).__call__),
        lambda f: f(theta(), mask=torch.ones(2, 5)),
        TypeError,
        ("mask", "bool", "float32"),
    ),
    "mask that leaves too few": (
        topk,
        lambda f: f(theta(), mask=bools("11111", "10010")),
        ValueError,
        ("row 1", "at least k=3 entries", "2 of 5"),
    ),
    "mask that leaves too few, after a row of NaN": (
        topk,
        lambda f: f(torch.tensor([[nan] * 5, [0.0] * 5]), mask=bools("11111", "10010")),
        ValueError,
        ("row 1", "at least k=3 entries", "2 of 5"),
    ),
    "-inf that leaves too few": (
        topk,
        lambda f: f(torch.tensor([[0.0, 1.0, -inf, -inf]])),
        ValueError,
        ("row 0", "at least k=3 entries", "2 of 4"),
    ),
    "mask that cuts a graph": (
        lambda: topk(solver=aimle.SpanningTree(3)),
        lambda f: f(theta(2, 3), mask=bools("111", "100")),
        ValueError,
        ("row 1", "connected"),
    ),
    "mask that blocks the way": (
        lambda: topk(solver=aimle.GridPath()),
        lambda f: f(theta(2, 3, 3), mask=bools("111", "000", "111")),
        ValueError,
        ("row 0", "connected"),
    ),
    # k
    "k for argmax": (
        lambda: topk(solver=aimle.Argmax()),
        lambda f: f(theta(), k=2),
        TypeError,
        ("k", "aimle.TopK"),
    ),
    "k for a callable": (
        lambda: topk(solver=lambda x: x),
        lambda f: f(theta(), k=2),
        TypeError,
        ("k", "aimle.TopK", "callable"),
    ),
    "k a float": (topk, lambda f: f(theta(), k=2.5), TypeError, ("k", "int", "float")),
    "k a bool": (topk, lambda f: f(theta(), k=True), TypeError, ("k", "int >= 0", "True", "bool")),
    "k a list": (topk, lambda f: f(theta(), k=[2, 3]), TypeError, ("k", "int64 tensor", "list")),
    "k negative": (topk, lambda f: f(theta(), k=-1), ValueError, ("k >= 0", "k=-1")),
    "k too large": (topk, lambda f: f(theta(), k=9), ValueError, ("0 <= k <= n", "k=9", "n=5")),
    "k per row of floats": (
        topk,
        lambda f: f(theta(), k=torch.ones(2)),
        TypeError,
        ("k per row", "int64", "float32"),
    ),
    "k per row of another shape": (
        topk,
        lambda f: f(theta(), k=torch.ones(3, dtype=torch.int64)),
        ValueError,
        ("k per row", "[2]", "[3]"),
    ),
    "k per row out of range": (
        topk,
        lambda f: f(theta(), k=torch.tensor([2, 6])),
        ValueError,
        ("row 1", "0 <= k <= 5", "k=6"),
    ),
    # key
    "key a number": (topk, lambda f: f(theta(), key=7), TypeError, ("key", "tensor", "int")),
    "key of floats": (
        topk,
        lambda f: f(theta(), key=torch.ones(2)),
        TypeError,
        ("key", "int64", "float32"),
    ),
    "key of another shape": (
        topk,
        lambda f: f(theta(), key=torch.ones(4, dtype=torch.int64)),
        ValueError,
        ("key", "[2]", "[4]"),
    ),
    "key on another device": (
        topk,
        lambda f: f(theta(), key=KEY.to(META)),
        ValueError,
        ("key", "theta", "cpu", "meta"),
    ),
    "extra arguments of a native solver": (
        topk,
        lambda f: f(theta(), 3, colour="red"),
        TypeError,
        ("TopK", "no extra arguments", "callable", "int, colour="),
    ),
    # dy
    "dy of another shape": (
        topk,
        backward_with(lambda z: z[:, :1]),
        ValueError,
        ("gradient", "[2, 2, 5]", "[2, 1, 5]"),
    ),
    "dy of another type": (
        topk,
        backward_with(lambda z: z.half()),
        TypeError,
        ("gradient", "float64", "float16"),
    ),
    "dy on another device": (
        topk,
        backward_with(lambda z: z.to(META)),
        ValueError,
        ("gradient", "cpu", "meta"),
    ),
    "dy through autograd": (
        topk,
        lambda f: f(theta()).backward(torch.ones(2, 5)),
        RuntimeError,
        ("shape",),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_bad_call_raises_and_leaves_the_state_alone(name: str):
    assert_refused(CALLS[name])


def test_torch_itself_refuses_integers_that_require_grad():
    with pytest.raises(RuntimeError, match="floating point"):
        torch.ones(2, 5, dtype=torch.int64).requires_grad_()


@pytest.mark.parametrize("solver", [aimle.TopK(2), aimle.TopK(2).__call__], ids=["native", "own"])
def test_derivatives_of_torch_func_are_refused_and_vmap_of_native_solvers_is_not(solver):
    layer = aimle.AIMLE(solver, noise=None, target=aimle.AdaptiveTarget.paper(initial_alpha=1.0))
    theta = torch.randn(3, 4, 5)

    def loss(x: torch.Tensor) -> torch.Tensor:
        return layer(x).sum()

    for call in (
        lambda: torch.func.grad(loss)(theta[0]),
        lambda: torch.func.jacrev(loss)(theta[0]),
        lambda: torch.func.jvp(loss, (theta[0],), (theta[0],)),
        lambda: torch.func.vmap(torch.func.grad(loss))(theta),
    ):
        with pytest.raises(
            RuntimeError, match=r"\[aimle.AIMLE\] .* torch.autograd.grad instead of"
        ):
            call()
    if not isinstance(solver, aimle.Solver):
        with pytest.raises(RuntimeError, match="vmap cannot map a callable solver"):
            torch.func.vmap(layer)(theta)
    else:
        assert torch.equal(torch.func.vmap(layer)(theta), torch.stack([layer(x) for x in theta]))
