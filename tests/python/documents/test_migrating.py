"""The calls that docs/guide/migrating.md gives to users of PyEPO train a model as printed."""

import re

import pytest
import torch
from repository import ROOT
from shortest_path_problem import cheapest_path, train
from torch import Tensor

import aimle

PAGE = ROOT / "docs" / "guide" / "migrating.md"
# The largest mean regret over three seeds. Untrained models have .7, and the best methods here .1.
BOUNDS = {
    "AIMLE": 0.15,
    "IMLE": 0.15,
    "DBB": 0.2,
    "Identity": 0.15,
    "DPO": 0.2,
    "perturbed_fenchel_young_loss": 0.13,
    "spo_plus_loss": 0.13,
}
STEPS, LEARNING_RATE, SEEDS = 40, 0.1, 3


def printed_calls() -> dict[str, str]:
    """The indented calls under PyEPO, by the name they call."""
    section = PAGE.read_text().split("## PyEPO")[1].split("\n## ")[0]
    calls = re.findall(r"^      (aimle\.\w+\(.*\))$", section, re.MULTILINE)
    return {call.split("(")[0].removeprefix("aimle."): call for call in calls}


def evaluate(call: str, **names: object):
    return eval(call, {"aimle": aimle, "solver": cheapest_path, **names})


def mean_regret(call: str) -> float:
    """After training with a loss, or with a layer and the distance of its paths to the best."""
    if "(costs, " in call:

        def loss(costs: Tensor, target: Tensor, true_costs: Tensor) -> Tensor:
            return evaluate(call, costs=costs, target=target, true_costs=true_costs).mean()

        return sum(train(loss, seed, STEPS, LEARNING_RATE) for seed in range(SEEDS)) / SEEDS
    total = 0.0
    for seed in range(SEEDS):
        layer = evaluate(call)

        def distance(
            costs: Tensor, target: Tensor, _: Tensor, layer: torch.nn.Module = layer
        ) -> Tensor:
            return (layer(costs) - target).abs().sum(1).mean()

        total += train(distance, seed, STEPS, LEARNING_RATE)
    return total / SEEDS


@pytest.fixture(autouse=True)
def one_thread():
    """The tensors are small."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_the_solver_finds_cheapest_paths():
    """Against all 70 paths."""
    costs = torch.rand(50, 40, generator=torch.Generator().manual_seed(0))
    weights = torch.randn(20_000, 40, generator=torch.Generator().manual_seed(1))
    every = cheapest_path(weights).unique(dim=0)
    assert len(every) == 70
    assert (every.sum(1) == 8).all()
    torch.testing.assert_close((costs * cheapest_path(costs)).sum(1), (costs @ every.T).amin(1))


def test_every_call_is_tried():
    assert set(BOUNDS) == set(printed_calls())


@pytest.mark.parametrize("name", BOUNDS)
def test_a_call_trains(name: str):
    assert mean_regret(printed_calls()[name]) < BOUNDS[name]
