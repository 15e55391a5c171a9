"""The ops under PyTorch's own checks, and under torch.compile."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.library import opcheck

import aimle

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")

ops = torch.ops.aimle

Arguments = tuple[tuple, dict]


def table() -> Tensor:
    return ops.sum_of_gamma_table(10, 10)


# Every op with its arguments, as functions of the device.
CALLS: dict[str, tuple[object, Callable[[torch.device], Arguments]]] = {
    "argmax": (ops.solve.default, lambda d: ((torch.randn(3, 5, device=d), "argmax"), {})),
    "argmax_masked": (
        ops.solve.default,
        lambda d: (
            (torch.randn(3, 5, device=d), "argmax", torch.ones(5, device=d) > 0, None, 0),
            {},
        ),
    ),
    "argmax_with_gradient": (
        ops.solve.default,
        lambda d: ((torch.randn(3, 5, device=d, requires_grad=True), "argmax"), {}),
    ),
    "topk": (ops.solve.default, lambda d: ((torch.randn(2, 3, 5, device=d), "topk:k=2"), {})),
    "topk_bfloat16": (
        ops.solve.default,
        lambda d: ((torch.randn(4, 6, device=d).bfloat16().t(), "topk:k=2"), {"check": 2}),
    ),
    "topk_k_per_row": (
        ops.solve.default,
        lambda d: (
            (torch.randn(2, 5, device=d), "topk:k=2"),
            {
                "mask": torch.ones(2, 5, device=d) > 0,
                "row_data": torch.tensor([1, 3], device=d),
            },
        ),
    ),
    "spanning_tree": (
        ops.solve.default,
        lambda d: ((torch.randn(4, 10, device=d, dtype=torch.float64), "spanning_tree:n=5"), {}),
    ),
    "spanning_tree_directed": (
        ops.solve.default,
        lambda d: ((torch.randn(20, device=d, requires_grad=True), "spanning_tree:n=5"), {}),
    ),
    "grid_path": (ops.solve.default, lambda d: ((torch.rand(3, 4, 5, device=d), "grid_path"), {})),
    "grid_path_settings": (
        ops.solve.default,
        lambda d: (
            (
                torch.rand(2, 4, 4, device=d),
                "grid_path:neighbourhood=4,source=0:1,target=3:-1,negative=error",
            ),
            {"mask": torch.ones(4, 4, device=d) > 0},
        ),
    ),
    "symmetrise": (ops.symmetrise.default, lambda d: ((torch.randn(3, 12, device=d), 4), {})),
    "symmetrise_with_gradient": (
        ops.symmetrise.default,
        lambda d: ((torch.randn(2, 12, device=d, requires_grad=True), 4), {}),
    ),
    "gumbel": (
        ops.gumbel.default,
        lambda d: ((torch.tensor([1, 2], device=d), [3], 2, [5]), {}),
    ),
    "normal": (
        ops.normal.default,
        lambda d: ((torch.tensor([1, 2], device=d), [3], -1, [5]), {}),
    ),
    "logistic": (
        ops.logistic.default,
        lambda d: ((torch.tensor([1, 2], device=d), [], 2, [4, 5]), {}),
    ),
    "sum_of_gamma": (
        ops.sum_of_gamma.default,
        lambda d: ((torch.tensor([1, 2], device=d), [2, 3], 2, [5], table().to(d)), {}),
    ),
    "sum_of_gamma_table": (
        ops.sum_of_gamma_table.default,
        lambda d: ((10, 10), {"device": d}),
    ),
    "draw_key": (ops.draw_key.default, lambda d: ((torch.randn(3, device=d),), {"rank": 1})),
}


@pytest.mark.parametrize("name", CALLS)
def test_opcheck(name: str, device: torch.device):
    op, arguments = CALLS[name]
    args, kwargs = arguments(device)
    opcheck(op, args, kwargs)


# ---- torch.compile -------------------------------------------------------------------------------


def compiled(function: Callable, **options) -> Callable:
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, **options)


def solve_everything(scores: Tensor, grids: Tensor, mask: Tensor, k: Tensor) -> list[Tensor]:
    return [
        aimle.Argmax()(scores),
        aimle.TopK(3)(scores * 2),
        aimle.TopK(3)(scores, mask=mask, k=k),
        aimle.SpanningTree(5)(scores),
        *aimle.solve(aimle.GridPath(4), grids, return_status=True),
        aimle.symmetrise(torch.cat([scores, scores.flip(-1)], -1), 5),
    ]


def inputs(batch: int, device: torch.device) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(batch)
    return (
        torch.randn(batch, 10, generator=generator).to(device),
        torch.rand(batch, 4, 6, generator=generator).to(device),
        (torch.rand(batch, 10, generator=generator) < 2).to(device),
        torch.randint(0, 10, (batch,), generator=generator).to(device),
    )


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_solvers_equal_eager(backend: str, device: torch.device):
    function = compiled(solve_everything, backend=backend)
    for expected, got in zip(
        solve_everything(*inputs(7, device)), function(*inputs(7, device)), strict=True
    ):
        assert torch.equal(got, expected)


def test_the_batch_may_change_without_another_compilation(device: torch.device):
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    function = compiled(solve_everything, backend=counter, dynamic=True)
    for batch in (7, 3, 64):
        for expected, got in zip(
            solve_everything(*inputs(batch, device)), function(*inputs(batch, device)), strict=True
        ):
            assert torch.equal(got, expected)
    assert counter.frame_count == 1


def draw_everything(theta: Tensor, key: Tensor) -> list[Tensor]:
    return [
        aimle.sample_noise(noise, theta.shape, key, nb_samples=nb_samples)
        for noise in ("gumbel", aimle.Normal(), "logistic", aimle.SumOfGamma(5), None)
        for nb_samples in (None, 3)
    ]


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_noise_equals_eager(dynamic: bool, device: torch.device, key: Tensor):
    function = compiled(draw_everything, backend="aot_eager", dynamic=dynamic)
    for shape in ((4, 5), (6, 9)):
        theta = torch.zeros(shape, device=device)
        for expected, got in zip(draw_everything(theta, key), function(theta, key), strict=True):
            assert torch.equal(got, expected)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_compiled_key_equals_the_eager_one_under_one_seed(backend: str, device: torch.device):
    def perturb(theta: Tensor) -> tuple[Tensor, Tensor]:
        key = aimle.draw_key(theta)
        return key, theta + aimle.sample_noise("gumbel", theta.shape, key)

    theta = torch.randn(4, 5, device=device)
    torch.manual_seed(3)
    expected = [perturb(theta), perturb(theta)]
    function = compiled(perturb, backend=backend)
    function(theta)
    torch.manual_seed(3)
    got = [function(theta), function(theta)]
    assert not torch.equal(expected[0][0], expected[1][0])
    torch.testing.assert_close(got, expected, rtol=0, atol=0)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_keys_drawn_in_one_compiled_function_differ(backend: str, device: torch.device):
    def draw(theta: Tensor) -> list[Tensor]:
        return [aimle.draw_key(theta), aimle.draw_key(theta)]

    def drawn(function: Callable) -> list[list[int]]:
        # In any order: inductor may swap draws that do not depend on one another.
        torch.manual_seed(4)
        return sorted(key.tolist() for key in function(theta))

    assert torch.Tag.nondeterministic_seeded in ops.draw_key.default.tags
    theta = torch.randn(4, 5, device=device)
    expected = drawn(draw)
    assert expected[0] != expected[1]
    function = compiled(draw, backend=backend)
    function(theta)
    assert drawn(function) == expected


def test_activation_checkpointing_replays_the_key(device: torch.device):
    keys = []

    def block(theta: Tensor) -> Tensor:
        keys.append(aimle.draw_key(theta))
        return theta.sin()

    theta = torch.randn(4, device=device, requires_grad=True)
    torch.utils.checkpoint.checkpoint(block, theta, use_reentrant=False).sum().backward()
    assert len(keys) == 2
    assert torch.equal(keys[0], keys[1])


def test_a_generator_under_compile_says_to_pass_a_key(device: torch.device):
    generator = torch.Generator(device)

    def draw(theta: Tensor) -> Tensor:
        return aimle.draw_key(theta, generator=generator)

    with pytest.raises(Exception, match="pass it as key"):
        compiled(draw, backend="eager")(torch.zeros(2, device=device))


def test_an_error_inside_a_compiled_graph_is_the_same_value_error(device: torch.device):
    function = compiled(aimle.TopK(2).__call__, backend="aot_eager")
    mask = torch.ones(2, 3, dtype=torch.bool, device=device)
    function(torch.randn(2, 3, device=device), mask=mask)
    mask[1, :2] = False
    if device.type == "cpu":
        with pytest.raises(ValueError, match="row 1: expected at least k=2 entries"):
            function(torch.randn(2, 3), mask=mask)
