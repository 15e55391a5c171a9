"""Solvers made from their texts, as the program names them."""

import pickle

import pytest
import torch

import aimle
from aimle.solvers import solver_of_text


@pytest.mark.parametrize(
    "solver",
    [
        aimle.Argmax(),
        aimle.TopK(3),
        aimle.SpanningTree(5),
        aimle.GridPath(4),
        aimle.Chain(),
        aimle.Arborescence(4, single_root=True),
        aimle.LatticePath("diagonal"),
    ],
    ids=str,
)
def test_it_is_the_solver_of_that_text(solver: aimle.Solver):
    assert solver_of_text(solver.text) == solver


def test_data_makes_it_complete():
    knapsack = aimle.Knapsack([3, 1, 4], capacity=5)
    made = solver_of_text(knapsack.text, knapsack.data)
    scores = torch.randn(5, 3)
    assert torch.equal(made(scores), knapsack(scores))
    again = pickle.loads(pickle.dumps(made))
    assert again == made
    assert torch.equal(again(scores), knapsack(scores))
    # The class that packs weights stays the one of that name.
    assert type(aimle.solver("knapsack", weights=[1], capacity=1)) is aimle.Knapsack


def test_a_wrong_text_is_refused():
    with pytest.raises(ValueError, match="topk"):
        solver_of_text("topk")
