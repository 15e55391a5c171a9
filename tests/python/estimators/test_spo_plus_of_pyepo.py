"""The SPO+ loss against PyEPO's, values and gradients."""

import pytest
import torch
from extras import need

import aimle

need("pyepo")
need("ortools")

ARCS = 40  # of the 5 x 5 grid


@pytest.fixture
def costs() -> tuple[torch.Tensor, torch.Tensor]:
    """Predicted and true ones. They are drawn at random, so that solutions are unique."""
    generator = torch.Generator().manual_seed(0)
    predicted, true = torch.rand(2, 30, ARCS, generator=generator) + 0.1
    return 2 * predicted, true


@pytest.mark.parametrize("problem", ["path", "knapsack"])
def test_values_and_gradients_are_those_of_pyepo(problem: str, costs):
    import pyepo.func
    from pyepo.model.ort import knapsackModel, shortestPathModel

    predicted, true = costs
    if problem == "path":
        model = shortestPathModel((5, 5))
        native, sense = aimle.DagPath([tuple(arc) for arc in model.arcs], 0, 24), "min"
    else:
        predicted, true, sense = predicted[:, :8], true[:, :8], "max"
        weights = [3, 1, 4, 2, 5, 2, 6, 3]
        model = knapsackModel(weights=[weights], capacity=[9])
        native = aimle.Knapsack(weights, 9)
    best = native(true if native.sense == sense else -true)
    values = (best * true).sum(-1, keepdim=True)
    theirs = predicted.clone().requires_grad_()
    expected = pyepo.func.SPOPlus(model, reduction="none")(theirs, true, best, values)
    expected.sum().backward()
    assert theirs.grad.abs().sum() > 0
    for solver in (native, aimle.from_pyepo(model)):
        for solution in (best, None):
            at = predicted.clone().requires_grad_()
            loss = aimle.spo_plus_loss(at, true, solver, solution=solution, sense=sense)
            torch.testing.assert_close(loss, expected.reshape(-1), atol=1e-4, rtol=1e-5)
            loss.sum().backward()
            torch.testing.assert_close(at.grad, theirs.grad, atol=1e-4, rtol=0)
