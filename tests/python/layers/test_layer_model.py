"""Random layers, on random input, against the model of helpers/layer_model.py: settings, masks,
k per row, types, shapes, special values, and the state over several passes.

A failure prints the seed and the layer.
"""

import math
import random
from functools import cache

import numpy as np
import pytest
import torch
from layer_model import AmbiguousError, LayerModel
from listed_structures import STRUCTURES, Listed
from torch import Tensor

import aimle

CASES = 40  # of each structure
TOLERANCE = {torch.float32: 3e-6, torch.float64: 1e-11, torch.bfloat16: 8e-3}
BATCHES = [(), (0,), (1,), (3,), (2, 2), (2, 1, 2), (9,)]

structure = cache(lambda name: STRUCTURES[name]())


def random_target(chance: random.Random) -> aimle.AdaptiveTarget | aimle.FixedTarget:
    kind = chance.choice(
        ["default", "default", "settings", "settings", "paper", "reference", "fixed"]
    )
    if kind == "fixed":
        return aimle.FixedTarget(chance.choice([0.0, 0.1, 1.0, 10.0, 1e30]))
    if kind == "default":
        return aimle.AdaptiveTarget()
    choices = {
        "initial_alpha": [0.5, 1.5],
        "scope": ["example", "sample", "batch"],
        "target_norm": [0.0, 0.5, 2.0],
        "decay": [0.0, 0.5],
        "step": [0.01, 0.3],
        "factor": [1.5],
        "alpha_range": [(0.1, 2.0)],
        "initial_gbar": [0.0, 3.0],
    }
    if kind == "settings":
        choices["scale"] = ["auto", "theta", "noise"]
        choices["rule"] = ["additive", "multiplicative"]
    given = {name: chance.choice(some) for name, some in choices.items() if chance.random() < 0.4}
    if "target_norm" in given and chance.random() < 0.3:
        given["momentum"] = 0.5
    make = {"paper": aimle.AdaptiveTarget.paper, "reference": aimle.AdaptiveTarget.reference}
    return make.get(kind, aimle.AdaptiveTarget)(**given)


def random_layer(chance: random.Random, listed: Listed) -> aimle.PerturbedMap:
    target = random_target(chance)
    noises = ["auto", "auto", "gumbel", "normal", "logistic", aimle.SumOfGamma(2, 3)]
    if getattr(target, "scale", "auto") != "noise":
        noises.append(None)
    settings = {
        "noise": chance.choice(noises),
        "nb_samples": chance.choice([1, 2, 3]),
        "temperature": chance.choice([None, None, 0.0, 0.5, 2.0]),
        "sense": chance.choice(["min"] if listed.solver.has_costs else [None, "max", "min"]),
        "output": chance.choice(["samples", "flat", "mean"]),
        "noise_in_eval": chance.random() < 0.3,
    }
    if chance.random() < 0.1:
        return aimle.STE(listed.solver, **settings)
    return aimle.AIMLE(
        listed.solver,
        target=target,
        symmetric_perturbation=chance.choice([None, True, False]),
        target_noise_temperature=chance.choice([None, None, None, 0.5]),
        **settings,
    )


def set_state(model: LayerModel, **values: float) -> None:
    for name, value in values.items():
        setattr(model, name, value)
        if getattr(model.layer, name) is not None:
            getattr(model.layer, name).fill_(value)


def random_rows(numbers: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    scale = numbers.choice([0.0, 1e-3, 1.0, 1.0, 1.0, 1e15])
    return numbers.standard_normal(shape) * scale


def viewed(tensor: Tensor, chance: random.Random) -> Tensor:
    """The same values, perhaps not contiguous."""
    wide = torch.stack([tensor, torch.ones_like(tensor)], -1)
    return chance.choice([tensor, wide[..., 0]])


def one_pass(model: LayerModel, dtype: torch.dtype, batch: tuple[int, ...], seed: int) -> str:
    """One pass of the layer and of the model, which must agree; says how far they got."""
    chance, numbers = random.Random(seed), np.random.default_rng(seed)
    layer, listed = model.layer, model.listed
    count, n = math.prod(batch), math.prod(listed.instance)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    values = random_rows(numbers, (count, n))
    if listed.solver.has_costs and chance.random() < 0.8:
        values = np.abs(values)
    if chance.random() < 0.1 and not isinstance(listed.solver, aimle.SpanningTree):
        values[numbers.random(values.shape) < 0.1] = math.inf if layer.sense == "min" else -math.inf
    if chance.random() < 0.1:
        values[numbers.random(values.shape) < 0.05] = math.nan
    theta = torch.from_numpy(values).to(dtype)
    mask = numbers.random((count, n)) < chance.choice([1.0, 1.0, 0.9])
    k = None
    if isinstance(listed.solver, aimle.TopK) and chance.random() < 0.4:
        k = numbers.integers(0, n, count)
    key = torch.tensor([seed, chance.randrange(1000)])
    layer.train(chance.random() < 0.85)

    z_model = model.forward(theta.to(wide).numpy(), mask, k, key)
    x = viewed(theta.reshape(*batch, *listed.instance), chance).requires_grad_()
    call = {"key": key, "k": None if k is None else torch.from_numpy(k).reshape(batch)}
    if not mask.all():
        call["mask"] = viewed(torch.from_numpy(mask).reshape(x.shape), chance)
    if z_model is None:
        with pytest.raises(ValueError, match=r"\[aimle::perturbed_map\]"):
            layer(x, **call)
        return "refused"
    z = layer(x, **call)
    if layer.output == "mean":
        z_model = z_model.mean(1)
    assert z.dtype == dtype
    expected = torch.from_numpy(z_model).to(wide).to(dtype).reshape(z.shape)
    torch.testing.assert_close(z, expected, rtol=0, atol=0, equal_nan=True)

    rows = (count, 1 if layer.output == "mean" else model.samples, n)
    values = random_rows(numbers, rows)
    values[numbers.random(rows[:2]) < 0.15] = chance.choice([0.0, 2.5, 1e-9])
    if chance.random() < 0.1:
        values[numbers.random(rows) < 0.05] = chance.choice([math.nan, math.inf])
    dy = torch.from_numpy(values).to(dtype)
    z.backward(viewed(dy.reshape(z.shape), chance))
    gradient = torch.from_numpy(model.backward(dy.to(wide).numpy())).to(wide).to(dtype)
    torch.testing.assert_close(
        x.grad, gradient.reshape(x.shape), rtol=TOLERANCE[dtype], atol=1e-45, equal_nan=True
    )
    stats = {name: value.item() for name, value in layer.stats().items()}
    rtol = 1e-9 if dtype == torch.float64 else 1e-6
    assert {name: stats[name] for name in model.stats} == pytest.approx(model.stats, rel=rtol)
    for name in ("alpha", "gbar", "updates", "reach", "velocity"):
        if getattr(layer, name) is not None:
            assert getattr(layer, name).item() == pytest.approx(getattr(model, name), rel=rtol)
    return "passed"


@pytest.mark.parametrize("name", STRUCTURES)
def test_random_layers_are_what_the_documentation_says(name: str):
    listed, outcomes = structure(name), []
    for seed in range(CASES):
        chance = random.Random(seed)
        layer, batch = random_layer(chance, listed), chance.choice(BATCHES)
        model, dtype = LayerModel(listed, layer), chance.choice(list(TOLERANCE))
        if layer.alpha is not None and chance.random() < 0.5:
            set_state(
                model, updates=chance.choice([1, 49, 500]), gbar=chance.uniform(0, 3), reach=2.5
            )
        for step in range(chance.choice([1, 2, 3])):
            try:
                outcomes.append(one_pass(model, dtype, batch, 1000 * seed + step))
            except AmbiguousError:
                outcomes.append("ambiguous")
                break
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, {dtype}, {batch}: {layer}") from error
    assert outcomes.count("passed") > CASES
