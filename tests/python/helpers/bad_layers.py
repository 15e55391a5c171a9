"""Small layers, and wrong arguments for their ops."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from layer_cases import assert_same_state, leaf, randn, state_of
from torch import Tensor

import aimle
from aimle.callable_solver.staged import CallableSolver

ops = torch.ops.aimle
nan, inf = float("nan"), float("inf")
KEY = torch.tensor([1, 2])
META = torch.device("meta")


def topk(**settings) -> aimle.AIMLE:
    settings = {"nb_samples": 2, "target": aimle.AdaptiveTarget.paper(0.7), **settings}
    return aimle.AIMLE(settings.pop("solver", aimle.TopK(3)), **settings)


def theta(*shape: int, **options) -> Tensor:
    return leaf(randn(*(shape or (2, 5)), **options))


def misbehaves(answer: Callable[[Tensor], Any], on_call: int = 1) -> Callable[[Tensor], Any]:
    """A solver that answers well until its on_call-th call."""
    calls = []

    def solver(scores: Tensor) -> Any:
        calls.append(scores)
        return aimle.TopK(3)(scores) if len(calls) < on_call else answer(scores)

    return solver


def raises(scores: Tensor) -> Tensor:
    raise LookupError("the solver's own words")


Misuse = tuple[
    Callable[[], aimle.PerturbedMap],
    Callable[[aimle.PerturbedMap], object],
    type[Exception],
    tuple[str, ...],
]


def op_settings(layer: aimle.PerturbedMap, solver: str) -> tuple:
    """The last arguments of the layer ops."""
    return (f"solver={solver} {layer._settings(True)}", *layer._temperatures())


def backward_with(dy: Callable[[Tensor], Tensor]) -> Callable[[aimle.PerturbedMap], object]:
    """Hands dy(z) to the backward op itself; autograd would already have refused it."""

    def call(layer: aimle.PerturbedMap) -> object:
        x = theta().detach()
        settings = op_settings(layer, layer.solver.text)
        inputs = (x, KEY, None, None, layer.table)
        z, bits = ops.perturbed_map_forward(*inputs, *settings)
        return ops.perturbed_map_backward(dy(z), bits, *inputs, *layer._state(), *settings)

    return call


def backward_handed(**given) -> Callable[[aimle.PerturbedMap], object]:
    """The backward op with one of the tensors that the layer hands it replaced."""

    def call(layer: aimle.PerturbedMap) -> object:
        x = theta().detach()
        settings = op_settings(layer, layer.solver.text)
        inputs = (x, KEY, None, None, given.get("table", layer.table))
        z, bits = ops.perturbed_map_forward(x, KEY, None, None, layer.table, *settings)
        names = ("alpha", "gbar", "updates", "memory", "stats")
        state = [given.get(name, own) for name, own in zip(names, layer._state(), strict=True)]
        bits = given.get("bits", bits)
        return ops.perturbed_map_backward(z, bits, *inputs, *state, *settings)

    return call


def applied_with(counts: Tensor, waiting: int = 3) -> Callable[[aimle.PerturbedMap], object]:
    """apply_counts on these counts and stats with so many entries behind them."""

    def call(layer: aimle.PerturbedMap) -> object:
        *state, stats = layer._state()
        stats = torch.cat([stats, stats.new_zeros(waiting)])
        return ops.apply_counts(counts, *state, stats, *op_settings(layer, layer.solver.text))

    return call


def difference_handed(**given) -> Callable[[aimle.PerturbedMap], object]:
    """The difference op with one of the tensors that the step op made replaced."""

    def call(layer: aimle.PerturbedMap) -> object:
        x = theta().detach()
        settings = op_settings(layer, CallableSolver(False, 1, True).text)
        inputs = (x, KEY, None, None, None)
        dy = randn(2, 2, 5)
        state = (layer.alpha, layer.updates, None)
        left, right, lambda_, counted = ops.step(dy, *inputs, *state, *settings)
        parts = {"z_left": left, "z_right": right, "lambda_": lambda_, "counted": counted}
        return ops.difference(*(parts | given).values(), *inputs, *layer._state(), *settings)

    return call


def step_with(alpha: Tensor | None) -> Callable[[aimle.PerturbedMap], object]:
    def call(layer: aimle.PerturbedMap) -> object:
        settings = op_settings(layer, CallableSolver(False, 1, True).text)
        state = (alpha, layer.updates, None)
        return ops.step(randn(2, 2, 5), theta(), KEY, None, None, None, *state, *settings)

    return call


def sum_of_gamma() -> aimle.AIMLE:
    return topk(noise=aimle.SumOfGamma(3))


def forward_difference() -> aimle.AIMLE:
    return topk(symmetric_perturbation=False)


def assert_refused(misuse: Misuse) -> None:
    """The call raises what it should, in words that it should use, and the state stays."""
    make, call, error, words = misuse
    layer = make()
    before = state_of(layer)
    with pytest.raises(error) as caught:
        call(layer)
    for word in words:
        assert word in str(caught.value), (word, str(caught.value))
    assert_same_state(layer, before)
