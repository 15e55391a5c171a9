"""Bad arguments of `aimle.diagnose` are named, with their value and what is allowed."""

import math
import re

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import aimle

THETA = torch.tensor([[0.3, -0.2, 0.1, 0.5], [0.0, 0.4, -0.6, 0.2]])
TOPK = aimle.TopK(2)
WEIGHTS = torch.tensor([1.0, -1.0, 2.0, 0.5])


def loss(z: Tensor) -> Tensor:
    return ((z * WEIGHTS).sum(-1) - 1).square()


def diagnose(layer=TOPK, theta=THETA, loss_fn=loss, **settings):
    quick = {"nb_samples": 2, "repeats": 2, "warmup": 0, "estimators": ["aimle"]}
    return aimle.diagnose(layer, theta, loss_fn, **{**quick, **settings})


CALLS = {
    "theta of ints": (
        {"theta": THETA.long()},
        TypeError,
        ("theta", "int64", "theta.float()"),
    ),
    "theta without a batch, of a callable": (
        {"layer": lambda x: TOPK(x), "theta": THETA[0]},
        ValueError,
        ("theta [batch, *instance]", "(4,)", "theta.unsqueeze(0)"),
    ),
    "theta without a row": (
        {"layer": aimle.GridPath(), "theta": THETA[0]},
        ValueError,
        ("theta of at least 2 dimensions", "[4]"),
    ),
    "theta of no example": ({"theta": THETA[:0]}, ValueError, ("at least one example", "[0, 4]")),
    "theta of nan": ({"theta": THETA * math.nan}, ValueError, ("finite values of theta", "nan")),
    "theta of infinities": (
        {"theta": torch.full((2, 4), math.inf)},
        ValueError,
        ("finite values of theta", "inf"),
    ),
    "no function": ({"loss_fn": "mse"}, TypeError, ("loss_fn to be a function of z", "str")),
    "losses of nan": (
        {"loss_fn": lambda z: loss(z) * math.nan},
        ValueError,
        ("loss_fn to return finite losses", "NaN"),
    ),
    "complex losses": ({"loss_fn": lambda z: loss(z) + 1j}, TypeError, ("real", "complex64")),
    "an array of losses": (
        {"loss_fn": lambda z: loss(z).detach().numpy()},
        TypeError,
        ("loss_fn to return a tensor", "ndarray", "by PyTorch"),
    ),
    "losses that ignore z": (
        {"loss_fn": lambda z: torch.ones(z.shape[:-1])},
        ValueError,
        ("the loss does not depend on the choice", "it is 1 for all"),
    ),
    "another layer": (
        {"layer": nn.Linear(4, 4)},
        TypeError,
        ("layer_or_solver", "Linear", "aimle.AIMLE(module)"),
    ),
    "a model with a layer": (
        {"layer": nn.Sequential(nn.Linear(4, 4), aimle.AIMLE(TOPK))},
        TypeError,
        ("layer_or_solver", "Sequential", "model.get_submodule('1')"),
    ),
    "a class": ({"layer": aimle.AIMLE}, TypeError, ("solver", "the class AIMLE itself")),
    "a callable that returns indices": (
        {"layer": lambda x: x.topk(2).indices},
        ValueError,
        ("[aimle.diagnose] the solver must keep the shape", "an entry for every score"),
    ),
    "no number of samples": ({"nb_samples": []}, ValueError, ("one number in nb_samples", "[]")),
    "half a sample": ({"nb_samples": 2.5}, TypeError, ("nb_samples to be an int", "float")),
    "a fixed step alone": ({"lambdas": 1.0}, ValueError, ("lambdas to be a list", "1.0")),
    "a step of nan": ({"lambdas": [1.0, math.nan]}, ValueError, ("lambdas", ">= 0", "nan")),
    "a step below zero": ({"lambdas": [-1.0]}, ValueError, ("lambdas", ">= 0", "[-1.0]")),
    "a step in words": ({"lambdas": ["1"]}, ValueError, ("lambdas", "numbers", "['1']")),
    "an estimator alone": ({"estimators": "aimle"}, TypeError, ("estimators", "list", "'aimle'")),
    "a number for an estimator": ({"estimators": [3]}, TypeError, ("estimators", "names", "[3]")),
    "no estimator": ({"estimators": []}, ValueError, ("estimators", "[]", "None measures all")),
    "a text with a step in words": (
        {"estimators": ["imle:lambda=x"]},
        ValueError,
        ("lambda to be a number >= 0", "'imle:lambda=x'"),
    ),
    "a text with samples": (
        {"estimators": ["dpo:nb_samples=4"]},
        ValueError,
        ("no nb_samples in the text", "'dpo:nb_samples=4'", "diagnose(..., nb_samples=...)"),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_bad_argument_is_named(name: str):
    settings, error, words = CALLS[name]
    with pytest.raises(error, match=re.escape("[aimle.diagnose]")) as caught:
        diagnose(**settings)
    for word in words:
        assert word in str(caught.value), (word, str(caught.value))


def test_arrays_of_settings_are_lists():
    rows = diagnose(
        nb_samples=np.array([1, 3]), lambdas=np.array([1.0]), estimators=("imle", "gumbel_rao")[:1]
    ).rows
    assert {row["samples"] for row in rows} == {1, 3}
    assert diagnose(estimators=["thresholds:max_weight=2"]).rows
