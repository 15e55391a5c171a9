"""Layers of callables that do not declare whether their solutions have the same number of ones."""

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from layer_cases import leaf, randn, run
from torch import Tensor

import aimle

UNKNOWN = [math.inf, math.inf]


def two_best(scores: Tensor) -> Tensor:
    return aimle.solve(aimle.TopK(2), scores)


def above_zero(scores: Tensor) -> Tensor:
    return (scores > 0).to(scores.dtype)


class Declared:
    """A callable with a declared size."""

    def __init__(self, solve: Callable[[Tensor], Tensor], fixed_size: bool | None) -> None:
        self.solve, self.fixed_size = solve, fixed_size
        self.default_noise, self.default_temperature = "gumbel", 1.0

    def __call__(self, scores: Tensor) -> Tensor:
        return self.solve(scores)


def sizes_in(rows: list[list[float]]) -> list[float]:
    """The least and minus the greatest finite sum."""
    sums = [sum(row) for row in rows if math.isfinite(sum(row))]
    return [min(sums, default=math.inf), min((-each for each in sums), default=math.inf)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("others", [1, 6])
def test_the_sizes_of_solutions_that_differ(dtype: torch.dtype, others: int, device: torch.device):
    nan, inf = math.nan, math.inf
    z = [[1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 0], [nan, 1, 1, 1], [inf, 0, 0, 0], [1, 1, 1, 1]]
    other = [[1, 0, 1, 0], [0, 1, 0, 0], [1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0], [nan] * 4]
    pairs = [(a, b) for a, b in zip(z, other if others > 1 else 6 * other[:1], strict=True)]
    expected = sizes_in([row for a, b in pairs if a != b for row in (a, b)])
    given = [torch.tensor(rows, dtype=dtype, device=device) for rows in (z, other[:others])]
    assert torch.ops.aimle.solution_sizes(*given).tolist() == expected
    turned = [rows.T.contiguous().T for rows in given]
    assert torch.ops.aimle.solution_sizes(*turned).tolist() == expected
    assert torch.ops.aimle.solution_sizes(*(rows[:0] for rows in given)).tolist() == UNKNOWN


def layer_of(solver: Any, **settings) -> aimle.AIMLE:
    return aimle.AIMLE(solver, **{"noise": "normal", "nb_samples": 2, **settings})


def passes(layer: aimle.AIMLE, key: Tensor, count: int = 3, rows: int = 3) -> list[Tensor]:
    """The gradients of some passes over different scores, with a constant in scores and loss."""
    device = key.device
    gradients = []
    for seed in range(count):
        theta = 3.0 + randn(rows, 6, seed=seed, device=device)
        dy = 2.0 + randn(rows, layer.nb_samples, 6, seed=100 + seed, device=device)
        gradients.append(run(layer, theta, dy, key=key)[1])
    return gradients


def assert_equal(some: list[Tensor], others: list[Tensor]) -> None:
    for one, other in zip(some, others, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("target", [aimle.AdaptiveTarget(), aimle.AdaptiveTarget.constant(0.5)])
def test_solutions_of_one_size_give_the_native_bits(
    symmetric: bool, target: aimle.AdaptiveTarget, device: torch.device, key: Tensor
):
    settings: dict[str, Any] = {"symmetric_perturbation": symmetric, "target": target}
    layer = layer_of(two_best, **settings).to(device)
    native = layer_of(aimle.TopK(2), **settings).to(device)
    assert_equal(passes(layer, key), passes(native, key))
    assert layer.sizes.tolist() == [2.0, -2.0]
    for name, value in native.state_dict().items():
        assert torch.equal(layer.state_dict()[name], value), name


def test_solutions_that_vary_keep_the_mean(device: torch.device, key: Tensor):
    layer = layer_of(above_zero).to(device)
    varies = layer_of(Declared(above_zero, False)).to(device)
    varies._noise_mean = 0.0  # normal noise is centred already
    assert_equal(passes(layer, key), passes(varies, key))
    least, greatest = layer.sizes.tolist()
    assert least < -greatest


def test_what_was_seen_is_remembered(device: torch.device, key: Tensor):
    """A batch whose solutions happen to have one size is no proof after others had not."""
    layer = layer_of(above_zero).to(device)
    passes(layer, key)
    sizes = layer.sizes.clone()
    other = layer_of(Declared(above_zero, False)).to(device)
    other.load_state_dict(layer.state_dict())
    theta = torch.tensor([[9.0, -9.0, -9.0], [-9.0, 9.0, -9.0]], device=device)
    dy = 2.0 + randn(2, 2, 3, dtype=torch.float32, device=device) / 100
    assert torch.equal(run(layer, theta, dy, key=key)[1], run(other, theta, dy, key=key)[1])
    assert torch.equal(layer.sizes, sizes)


def test_equal_solutions_prove_nothing(device: torch.device, key: Tensor):
    """A constant gradient moves a single solution whose size can change."""
    layer = layer_of(above_zero, noise=None, nb_samples=1).to(device)
    theta = leaf(torch.tensor([[1.0, 2.0, -0.5]], device=device))
    layer(theta).sum().backward()
    assert theta.grad.norm() > 0
    fixed = layer_of(two_best, noise=None, nb_samples=1).to(device)
    fixed(leaf(theta)).sum().backward()
    assert fixed.sizes.tolist() == UNKNOWN


def test_sizes_declared_as_unknown_are_found_out(device: torch.device, key: Tensor):
    """The declaration concerns only the default noise."""
    declared, plain = layer_of(Declared(two_best, None)).to(device), layer_of(two_best).to(device)
    assert_equal(passes(declared, key), passes(plain, key))
    assert declared.sizes.tolist() == plain.sizes.tolist() == [2.0, -2.0]


def test_a_declaration_takes_precedence(device: torch.device, key: Tensor):
    for fixed_size in (True, False):
        layer = layer_of(Declared(two_best, fixed_size)).to(device)
        assert layer.sizes is None
    solver = Declared(two_best, True)
    del solver.fixed_size
    layer = layer_of(solver).to(device)
    passes(layer, key)
    solver.fixed_size = False  # declared later
    declared = layer_of(Declared(two_best, False)).to(device)
    declared.load_state_dict(layer.state_dict())
    assert_equal(passes(layer, key, 1), passes(declared, key, 1))


@pytest.mark.parametrize(
    "target", [aimle.AdaptiveTarget.paper(1.0), aimle.AdaptiveTarget.reference(), None]
)
def test_rules_that_keep_the_mean_have_no_sizes(target: aimle.AdaptiveTarget | None):
    layer = aimle.IMLE(two_best) if target is None else aimle.AIMLE(two_best, target=target)
    assert "sizes" not in layer.state_dict()


def test_eval_mode_records_nothing(device: torch.device, key: Tensor):
    layer = layer_of(two_best, noise_in_eval=True).to(device).eval()
    passes(layer, key)
    assert layer.sizes.tolist() == UNKNOWN


def test_passes_of_one_graph_are_combined(device: torch.device, key: Tensor):
    layer = layer_of(two_best).to(device)
    some, others = leaf(randn(3, 6, device=device)), leaf(randn(3, 6, seed=5, device=device))
    (layer(some, key=key).square().sum() + layer(others, key=key).square().sum()).backward()
    assert layer.sizes.tolist() == [2.0, -2.0]


def test_rows_without_a_solution_are_left_out(device: torch.device, key: Tensor):
    def some_unknown(scores: Tensor) -> Tensor:
        z = two_best(scores)
        z[0] = math.nan
        return z

    layer = layer_of(some_unknown, fractional=True).to(device)
    passes(layer, key, 1)
    assert layer.sizes.tolist() == [2.0, -2.0]


def test_a_batch_may_be_empty(device: torch.device):
    layer = layer_of(two_best).to(device)
    theta = leaf(torch.zeros(0, 6, device=device))
    layer(theta).sum().backward()
    assert theta.grad.shape == (0, 6)
    assert layer.sizes.tolist() == UNKNOWN


@pytest.mark.parametrize("solver", [two_best, above_zero])
def test_compiled_code_finds_the_same(solver, device: torch.device, key: Tensor):
    eager, layer = layer_of(solver).to(device), layer_of(solver).to(device)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    for seed in range(2):
        theta, same = (leaf(3.0 + randn(3, 6, seed=seed, device=device)) for _ in range(2))
        dy = 2.0 + randn(3, 2, 6, seed=9, device=device)
        eager(theta, key=key).backward(dy)
        compiled(same, key=key).backward(dy)
        assert torch.equal(theta.grad, same.grad)
        assert torch.equal(eager.sizes, layer.sizes)


def test_copies_are_independent(device: torch.device, key: Tensor):
    layer = layer_of(two_best).to(device)
    other = copy.deepcopy(layer)
    passes(layer, key, 1)
    assert other.sizes.tolist() == UNKNOWN
    assert layer.to(torch.bfloat16).sizes.dtype == torch.float64


def test_saved_sizes_continue_a_run(device: torch.device, key: Tensor):
    layer = layer_of(above_zero).to(device)
    passes(layer, key)
    resumed = layer_of(above_zero).to(device)
    resumed.load_state_dict(layer.state_dict())
    assert torch.equal(resumed.sizes, layer.sizes)
    assert_equal(passes(resumed, key, 1, rows=1), passes(layer, key, 1, rows=1))


def test_states_without_sizes_load_and_states_with_sizes_are_portable(
    device: torch.device, key: Tensor
):
    layer = layer_of(two_best).to(device)
    passes(layer, key)
    older = {name: value for name, value in layer.state_dict().items() if name != "sizes"}
    resumed = layer_of(two_best).to(device)
    resumed.load_state_dict(older)
    assert resumed.sizes.tolist() == UNKNOWN
    assert resumed.alpha == layer.alpha
    native = layer_of(aimle.TopK(2)).to(device)
    native.load_state_dict(layer.state_dict())
    assert native.alpha == layer.alpha


def test_leaving_the_meta_device_nothing_is_known(device: torch.device):
    layer = layer_of(two_best).to("meta").to_empty(device=device)
    assert layer.sizes.tolist() == UNKNOWN
