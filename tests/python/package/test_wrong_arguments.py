"""Wrong arguments of public functions: errors that name the function and the argument."""

from collections.abc import Callable

import pytest
import torch

import aimle

KEY = torch.tensor([1, 2])
SCORES = torch.zeros(2, 5)
TOPK = aimle.TopK(2)
FIXED = aimle.FixedTarget(1.0)


def of_number(z: torch.Tensor) -> int:
    return 3


WRONG: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "symmetrise n": (
        lambda: aimle.symmetrise(SCORES, "x"),
        TypeError,
        r"\[aimle.symmetrise\] expected n to be an int but got str",
    ),
    "a size of text": (
        lambda: aimle.sample_noise("gumbel", ("x",), KEY),
        TypeError,
        r"\[aimle.sample_noise\] expected shape to be a sequence of sizes but got \('x',\)",
    ),
    "a size of half": (
        lambda: aimle.sample_noise("gumbel", (2, 2.5), KEY),
        TypeError,
        r"shape to be a sequence of sizes but got \(2, 2.5\)",
    ),
    "a size of bool": (
        lambda: aimle.sample_noise("gumbel", (2, True), KEY),
        TypeError,
        r"shape to be a sequence of sizes but got \(2, True\)",
    ),
    "check": (
        lambda: aimle.solve(TOPK, SCORES, check="all"),
        TypeError,
        r"\[aimle.solve\] expected check to be True or False but got 'all'",
    ),
    "return_status": (
        lambda: aimle.solve(TOPK, SCORES, return_status=1),
        TypeError,
        r"\[aimle.solve\] expected return_status to be True or False but got 1",
    ),
    "solver name": (
        lambda: aimle.solver(["topk"]),
        TypeError,
        r"\[aimle.solver\] expected name to be a str but got list",
    ),
    "library path": (
        lambda: aimle.load_library(3),
        TypeError,
        r"\[aimle.load_library\] expected path to be a path but got int",
    ),
    "expected f": (
        lambda: aimle.exact.expected(TOPK, SCORES, "f"),
        TypeError,
        r"\[aimle.exact.expected\] expected f to be callable but got str",
    ),
    "expected f of a number": (
        lambda: aimle.exact.expected(TOPK, SCORES, of_number),
        TypeError,
        r"\[aimle.exact.expected\] expected f to return a tensor but got int",
    ),
    "gradient f": (
        lambda: aimle.exact.exact_gradient(TOPK, SCORES, None),
        TypeError,
        "expected f to be callable but got NoneType",
    ),
    "scale of packed weights": (
        lambda: aimle.Knapsack.pack([1], 3, scale="x"),
        TypeError,
        r"\[aimle.Knapsack\] expected scale to be an int but got str",
    ),
    "difference": (
        lambda: aimle.PerturbedMap(TOPK, difference="both", target=FIXED),
        ValueError,
        r"\[aimle.PerturbedMap\] expected difference to be 'central' or .* but got 'both'",
    ),
    "target": (
        lambda: aimle.PerturbedMap(TOPK, difference="central", target=3),
        TypeError,
        r"\[aimle.PerturbedMap\] expected target to be an aimle.AdaptiveTarget or .* but got int",
    ),
    "save_to": (
        lambda: aimle.per_instance(len, save_to=3),
        TypeError,
        r"\[aimle.per_instance\] expected save_to to be a path or None but got int",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_named(name: str):
    call, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        call()
