"""One table of misuse of the layers: what was done, the exception, and the words its message holds.

Whatever the misuse, the layer's state is what it was before.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from layer_cases import assert_same_state, leaf, randn, run, state_of
from torch import Tensor

import aimle

ops = torch.ops.aimle
nan, inf = float("nan"), float("inf")
KEY = torch.tensor([1, 2])
META = torch.device("meta")


def topk(**settings) -> aimle.AIMLE:
    settings = {"nb_samples": 2, "target": aimle.AdaptiveTarget(0.7), **settings}
    return aimle.AIMLE(settings.pop("solver", aimle.TopK(3)), **settings)


def theta(*shape: int, **options) -> Tensor:
    return leaf(randn(*(shape or (2, 5)), **options))


def bools(*rows: str) -> Tensor:
    """bools("101", "111"): one string per row, "1" = may be chosen."""
    return torch.tensor([[c == "1" for c in row] for row in rows])


def misbehaves(answer: Callable[[Tensor], Any], on_call: int = 1) -> Callable[[Tensor], Any]:
    """A solver that answers well until its on_call-th call."""
    calls = []

    def solver(scores: Tensor) -> Any:
        calls.append(scores)
        return aimle.TopK(3)(scores) if len(calls) < on_call else answer(scores)

    return solver


def raises(scores: Tensor) -> Tensor:
    raise LookupError("the solver's own words")


# ---- Settings: nothing to call, the constructor refuses ------------------------------------------

SETTINGS: dict[str, tuple[Callable[[], object], type[Exception], tuple[str, ...]]] = {
    "solver": (lambda: topk(solver=3), TypeError, ("solver", "callable", "int")),
    "solver a name": (lambda: topk(solver="topk"), TypeError, ("solver", "aimle.TopK", "str")),
    "no samples": (lambda: topk(nb_samples=0), ValueError, ("nb_samples >= 1", "nb_samples=0")),
    "negative samples": (lambda: topk(nb_samples=-3), ValueError, ("nb_samples >= 1", "-3")),
    "samples a float": (lambda: topk(nb_samples=2.0), TypeError, ("nb_samples", "int", "float")),
    "negative temperature": (
        lambda: topk(theta_noise_temperature=-1.0),
        ValueError,
        ("theta_noise_temperature", ">= 0", "-1.0"),
    ),
    "nan temperature": (
        lambda: topk(theta_noise_temperature=nan),
        ValueError,
        ("theta_noise_temperature", "finite", "nan"),
    ),
    "temperature a string": (
        lambda: topk(theta_noise_temperature="1"),
        ValueError,
        ("theta_noise_temperature", ">= 0", "'1'"),
    ),
    "negative target temperature": (
        lambda: topk(target_noise_temperature=-0.5),
        ValueError,
        ("target_noise_temperature", ">= 0", "-0.5"),
    ),
    "infinite target temperature": (
        lambda: topk(target_noise_temperature=inf),
        ValueError,
        ("target_noise_temperature", "finite", "inf"),
    ),
    "output": (
        lambda: topk(output="sum"),
        ValueError,
        ("output", "'samples'", "'flat'", "'mean'", "'sum'"),
    ),
    "sense": (lambda: topk(sense="up"), ValueError, ("sense", "'max'", "'min'", "'up'")),
    "noise": (lambda: topk(noise="cauchy"), ValueError, ("noise", "'gumbel'", "'cauchy'")),
    "target": (lambda: topk(target=0.5), TypeError, ("target", "AdaptiveTarget", "float")),
    "scale without noise": (
        lambda: topk(noise=None, target=aimle.AdaptiveTarget(scale="noise")),
        ValueError,
        ("scale='noise'", "noise is None"),
    ),
    "projection": (
        lambda: aimle.Identity(aimle.TopK(3), projection="max"),
        ValueError,
        ("projection", "'std'", "'mean'", "'norm'", "'max'"),
    ),
    "negative lambda": (
        lambda: aimle.FixedTarget(-1.0),
        ValueError,
        ("FixedTarget", "lambda_", ">= 0", "-1.0"),
    ),
    "nan lambda": (lambda: aimle.FixedTarget(nan), ValueError, ("lambda_", "finite", "nan")),
    "negative lambda of DBB": (
        lambda: aimle.DBB(aimle.TopK(3), -2.0),
        ValueError,
        ("lambda_", ">= 0", "-2.0"),
    ),
    "negative step": (
        lambda: aimle.AdaptiveTarget(step=-1e-3),
        ValueError,
        ("AdaptiveTarget", "step", ">= 0", "-0.001"),
    ),
    "negative target norm": (
        lambda: aimle.AdaptiveTarget(target_norm=-1),
        ValueError,
        ("target_norm", ">= 0", "-1"),
    ),
    "decay of one": (
        lambda: aimle.AdaptiveTarget(decay=1.0),
        ValueError,
        ("decay", "[0, 1)", "1.0"),
    ),
    "factor of one": (
        lambda: aimle.AdaptiveTarget(factor=1.0),
        ValueError,
        ("factor", "> 1", "1.0"),
    ),
    "infinite factor": (
        lambda: aimle.AdaptiveTarget(factor=inf),
        ValueError,
        ("factor", "finite", "inf"),
    ),
    "momentum of one": (
        lambda: aimle.AdaptiveTarget(momentum=1.0),
        ValueError,
        ("momentum", "[0, 1)", "1.0"),
    ),
    "scope": (
        lambda: aimle.AdaptiveTarget(scope="row"),
        ValueError,
        ("scope", "example, sample, batch", "'row'"),
    ),
    "scale": (
        lambda: aimle.AdaptiveTarget(scale="sigma"),
        ValueError,
        ("scale", "theta, noise", "'sigma'"),
    ),
    "rule": (
        lambda: aimle.AdaptiveTarget(rule="pid"),
        ValueError,
        ("rule", "additive, multiplicative", "'pid'"),
    ),
    "negative alpha": (
        lambda: aimle.AdaptiveTarget(-0.1),
        ValueError,
        ("initial_alpha", "[0, inf]", "-0.1"),
    ),
    "nan alpha": (lambda: aimle.AdaptiveTarget(nan), ValueError, ("initial_alpha", "nan")),
    "alpha out of its range": (
        lambda: aimle.AdaptiveTarget(3.0, alpha_range=(0.0, 2.0)),
        ValueError,
        ("initial_alpha", "[0, 2]", "3.0"),
    ),
    "range the wrong way": (
        lambda: aimle.AdaptiveTarget(alpha_range=(2, 1)),
        ValueError,
        ("alpha_range", "low <= high", "(2, 1)"),
    ),
    "range of nothing": (
        lambda: aimle.AdaptiveTarget(alpha_range=(0.0, 0.0)),
        ValueError,
        ("alpha_range", "high > 0", "(0.0, 0.0)"),
    ),
    "range not a pair": (
        lambda: aimle.AdaptiveTarget(alpha_range=5.0),
        ValueError,
        ("alpha_range", "(low, high)", "5.0"),
    ),
    "range of words": (
        lambda: aimle.AdaptiveTarget(alpha_range=("a", "b")),
        ValueError,
        ("alpha_range", "low <= high", "('a', 'b')"),
    ),
    "range with zero for factors": (
        lambda: aimle.AdaptiveTarget(rule="multiplicative", alpha_range=(0.0, 1.0)),
        ValueError,
        ("alpha_range", "low > 0", "multiplicative"),
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_bad_setting_is_refused(name: str):
    call, error, words = SETTINGS[name]
    with pytest.raises(error) as caught:
        call()
    for word in ("[aimle", *words):
        assert word in str(caught.value), (word, str(caught.value))


# ---- Calls: (layer, what is done with it, exception, words) --------------------------------------

Misuse = tuple[
    Callable[[], aimle.PerturbedMap],
    Callable[[aimle.PerturbedMap], object],
    type[Exception],
    tuple[str, ...],
]


def backward_with(dy: Callable[[Tensor], Tensor]) -> Callable[[aimle.PerturbedMap], object]:
    """Hands dy(z) to the backward op itself; autograd would already have refused it."""

    def call(layer: aimle.PerturbedMap) -> object:
        x = theta().detach()
        settings = (*layer.solver.layer_arguments(), *layer._settings(True))
        inputs = (x, KEY, None, None, layer.table)
        z, bits = ops.perturbed_map_forward(*inputs, *settings)
        return ops.perturbed_map_backward(dy(z), bits, *inputs, *layer._state(), *settings)

    return call


def backward_handed(**given) -> Callable[[aimle.PerturbedMap], object]:
    """The backward op with one of the tensors that the layer hands it replaced."""

    def call(layer: aimle.PerturbedMap) -> object:
        x = theta().detach()
        settings = (*layer.solver.layer_arguments(), *layer._settings(True))
        inputs = (x, KEY, None, None, given.get("table", layer.table))
        z, bits = ops.perturbed_map_forward(x, KEY, None, None, layer.table, *settings)
        names = ("alpha", "gbar", "updates", "velocity", "stats")
        state = [given.get(name, own) for name, own in zip(names, layer._state(), strict=True)]
        bits = given.get("bits", bits)
        return ops.perturbed_map_backward(z, bits, *inputs, *state, *settings)

    return call


def difference_handed(**given) -> Callable[[aimle.PerturbedMap], object]:
    """The difference op with one of the tensors that the step op made replaced."""

    def call(layer: aimle.PerturbedMap) -> object:
        x = theta().detach()
        settings = ("callable", [0, 1], *layer._settings(True))
        inputs = (x, KEY, None, None, None)
        dy = randn(2, 2, 5)
        left, right, lambda_, counted = ops.step(dy, *inputs, layer.alpha, *settings)
        parts = {"z_left": left, "z_right": right, "lambda_": lambda_, "counted": counted}
        return ops.difference(*(parts | given).values(), *inputs, *layer._state(), *settings)

    return call


def step_with(alpha: Tensor | None) -> Callable[[aimle.PerturbedMap], object]:
    def call(layer: aimle.PerturbedMap) -> object:
        settings = ("callable", [0, 1], *layer._settings(True))
        return ops.step(randn(2, 2, 5), theta(), KEY, None, None, None, alpha, *settings)

    return call


def sum_of_gamma() -> aimle.AIMLE:
    return topk(noise=aimle.SumOfGamma(3))


def forward_difference() -> aimle.AIMLE:
    return topk(symmetric_perturbation=False)


CALLS: dict[str, Misuse] = {
    # theta
    "theta a list": (topk, lambda f: f([1.0, 2.0]), TypeError, ("theta", "tensor", "list")),
    "theta of integers": (
        topk,
        lambda f: f(torch.ones(2, 5, dtype=torch.int64)),
        TypeError,
        ("theta", "floating-point", "torch.int64"),
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
        ("6 (undirected) or 12 (directed)", "vertices=4", "7"),
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
        ("theta", "[batch, *instance]", "(5,)"),
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
        lambda f: f(theta(), key=torch.ones(3, dtype=torch.int64)),
        ValueError,
        ("key", "[2]", "[3]"),
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
        ("TopK", "no extra arguments", "callable"),
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
    # What the layer hands its ops.
    "alpha missing": (topk, backward_handed(alpha=None), ValueError, ("adaptive", "alpha")),
    "alpha of float32": (
        topk,
        backward_handed(alpha=torch.tensor(1.0)),
        TypeError,
        ("alpha", "float64", "float32"),
    ),
    "gbar missing": (topk, backward_handed(gbar=None), ValueError, ("adaptive", "gbar")),
    "updates of another shape": (
        topk,
        backward_handed(updates=torch.zeros(2, dtype=torch.int64)),
        ValueError,
        ("updates", "[]", "[2]"),
    ),
    "stats of another shape": (
        topk,
        backward_handed(stats=torch.zeros(3, dtype=torch.float64)),
        ValueError,
        ("stats", "[8]", "[3]"),
    ),
    "bits of another shape": (
        forward_difference,
        backward_handed(bits=torch.zeros(1, 1, dtype=torch.uint8)),
        ValueError,
        ("bits", "[4, 1]", "[1, 1]"),
    ),
    "table missing": (
        sum_of_gamma,
        backward_handed(table=None),
        ValueError,
        ("sum_of_gamma", "table"),
    ),
    "table of another shape": (
        sum_of_gamma,
        backward_handed(table=torch.zeros(7)),
        ValueError,
        ("table", "[2056]", "[7]"),
    ),
    "no alpha to step with": (topk, step_with(None), ValueError, ("adaptive", "alpha")),
    "alpha to step with of float32": (
        topk,
        step_with(torch.tensor(0.5)),
        TypeError,
        ("alpha", "float64", "float32"),
    ),
    "z of another shape": (
        topk,
        difference_handed(z_left=torch.zeros(4, 4).double()),
        ValueError,
        ("z_left", "[4, 5]", "[4, 4]"),
    ),
    "z of another type": (
        topk,
        difference_handed(z_right=torch.zeros(4, 5)),
        TypeError,
        ("z_right", "float64", "float32"),
    ),
    "lambda of another shape": (
        topk,
        difference_handed(lambda_=torch.zeros(2, 2).double()),
        ValueError,
        ("lambda_", "[2, 4]", "[2, 2]"),
    ),
    "counts of another shape": (
        topk,
        difference_handed(counted=torch.zeros(1, 2, dtype=torch.uint8)),
        ValueError,
        ("counted", "[2, 2]", "[1, 2]"),
    ),
    # Callable solvers, in forward and in backward.
    "a solver that raises": (
        lambda: topk(solver=misbehaves(raises)),
        lambda f: f(theta()),
        LookupError,
        ("the solver's own words",),
    ),
    "a solver that returns no tensor": (
        lambda: topk(solver=misbehaves(lambda x: x.tolist())),
        lambda f: f(theta()),
        TypeError,
        ("solver", "tensor", "list"),
    ),
    "a solver that returns another shape": (
        lambda: topk(solver=misbehaves(lambda x: x[:, :2])),
        lambda f: f(theta()),
        ValueError,
        ("solver", "shape", "[4, 5]", "[4, 2]"),
    ),
    "a solver that returns another type": (
        lambda: topk(solver=misbehaves(lambda x: x > 0)),
        lambda f: f(theta()),
        TypeError,
        ("solver", "dtype", "torch.float64", "torch.bool"),
    ),
    "a solver that returns another device": (
        lambda: topk(solver=misbehaves(lambda x: x.to(META))),
        lambda f: f(theta()),
        ValueError,
        ("solver", "device", "cpu", "meta"),
    ),
    "a solver that raises in backward": (
        lambda: topk(solver=misbehaves(raises, on_call=3)),
        lambda f: run(f, theta()),
        LookupError,
        ("the solver's own words",),
    ),
    "a solver that returns another shape in backward": (
        lambda: topk(solver=misbehaves(lambda x: x[:, :2], on_call=2)),
        lambda f: run(f, theta()),
        ValueError,
        ("solver", "shape", "[4, 5]", "[4, 2]"),
    ),
    "costs that the solver refuses": (
        lambda: topk(solver=aimle.GridPath(negative="error"), noise=None),
        lambda f: f(torch.full((2, 3, 3), -1.0)),
        ValueError,
        ("row 0", "sample 0", "costs >= 0", 'negative="error"'),
    ),
    "costs that the solver refuses after the step": (
        lambda: topk(
            solver=aimle.GridPath(negative="error"), noise=None, target=aimle.AdaptiveTarget(5.0)
        ),
        lambda f: run(f, torch.ones(2, 3, 3)),
        ValueError,
        ("row 0", "sample 0", "costs >= 0", 'negative="error"', "step"),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_bad_call_raises_and_leaves_the_state_alone(name: str):
    make, call, error, words = CALLS[name]
    layer = make()
    before = state_of(layer)
    with pytest.raises(error) as caught:
        call(layer)
    for word in words:
        assert word in str(caught.value), (word, str(caught.value))
    assert_same_state(layer, before)


def test_torch_itself_refuses_integers_that_require_grad():
    with pytest.raises(RuntimeError, match="floating point"):
        torch.ones(2, 5, dtype=torch.int64).requires_grad_()


# ---- Values that are answered with NaN -----------------------------------------------------------

NANS: dict[str, tuple[dict, Callable[[Tensor], None], Callable[[Tensor], None]]] = {
    "NaN in theta": ({}, lambda x: x[0, 1].fill_(nan), lambda dy: None),
    "NaN in dy": ({}, lambda x: None, lambda dy: dy[0, 0, 1].fill_(nan)),
    "inf in dy": ({}, lambda x: None, lambda dy: dy[0, 0, 2].fill_(inf)),
    "-inf in dy": ({}, lambda x: None, lambda dy: dy[0, 0, 2].fill_(-inf)),
    "NaN in both": ({}, lambda x: x[0, 1].fill_(nan), lambda dy: dy[0, 0, 1].fill_(nan)),
    "a step that overflows": (
        {"target": aimle.FixedTarget(1e30)},
        lambda x: None,
        lambda dy: dy[0].fill_(1e30),
    ),
}


def quiet(scores: Tensor) -> Tensor:
    """A callable that answers what it cannot solve with NaN."""
    return aimle.solve(aimle.TopK(3), scores, check=False)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("stranger", [False, True], ids=["fused", "staged"])
@pytest.mark.parametrize("name", NANS)
def test_the_documented_nan(name: str, stranger: bool, symmetric: bool):
    """NaN reaches its own example's gradient and no other, and the state does not move."""
    settings, spoil_theta, spoil_dy = NANS[name]
    solver = quiet if stranger else aimle.TopK(3)
    layer = topk(solver=solver, nb_samples=1, symmetric_perturbation=symmetric, **settings)
    x, dy = randn(2, 5, dtype=torch.float32), randn(2, 1, 5, dtype=torch.float32)
    spoil_theta(x)
    spoil_dy(dy)
    dy[1] = 0.0
    before = state_of(layer)
    _, gradient = run(layer, x, dy, key=KEY)
    assert gradient[0].isnan().all()
    assert gradient[1].eq(0).all()
    assert_same_state(layer, before)


def test_infinite_scores_are_choices_not_errors():
    """+inf is always chosen and -inf never; neither moves, the rest has its gradient."""
    x = torch.tensor([[inf, 0.1, -inf, 0.3, -0.2, 0.0]], dtype=torch.float64)
    layer = topk(target=aimle.AdaptiveTarget(2.0), nb_samples=50)
    z, gradient = run(layer, x, key=KEY)
    assert z[..., 0].eq(1).all()
    assert z[..., 2].eq(0).all()
    assert gradient.isfinite().all()
    assert gradient[0, [0, 2]].eq(0).all()
    assert gradient.count_nonzero() > 0
