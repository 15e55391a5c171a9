"""Solvers of other libraries: an example of each, compared with a native solver."""

import contextlib
import copy
import functools
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from extras import need
from layer_cases import run
from repository import ROOT

import aimle


def scores_of(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def assert_trains_like(solver, native: aimle.Solver, theta: torch.Tensor) -> None:
    """The same solutions and gradients, in copies and pickles too, and with masked entries."""
    settings = {"nb_samples": 2, "noise": "normal", "symmetric_perturbation": True}
    settings |= {"target": aimle.FixedTarget(0.5), "temperature": 0.3}
    key = torch.tensor([1, 2])
    expected = run(aimle.AIMLE(native, **settings), theta, key=key)
    for each in (solver, copy.deepcopy(solver), pickle.loads(pickle.dumps(solver))):
        got = run(aimle.AIMLE(each, **settings), theta, key=key)
        assert torch.equal(got[0], expected[0])
        assert torch.equal(got[1], expected[1])
    assert solver.sense == native.sense


def test_linear_sum_assignment():
    pytest.importorskip("scipy")
    assert_trains_like(aimle.from_linear_sum_assignment(), aimle.Assignment(), scores_of(3, 4, 4))
    mask = ~torch.eye(4, dtype=torch.bool)
    layer = aimle.AIMLE(aimle.from_linear_sum_assignment(), noise=None)
    z = layer(scores_of(3, 4, 4), mask=mask)
    assert z[..., ~mask].count_nonzero() == 0
    assert z.sum() == 3 * 4
    costs = scores_of(2, 3, 3)
    cheapest = aimle.from_linear_sum_assignment(sense="min")(costs)
    assert torch.equal(cheapest, aimle.Assignment()(-costs))


def test_milp():
    optimize = pytest.importorskip("scipy.optimize")
    weights = [3, 1, 4, 1, 5]
    budget = optimize.LinearConstraint(np.array([weights]), ub=7)
    assert_trains_like(aimle.from_milp(budget), aimle.Knapsack(weights, 7), scores_of(4, 5))
    impossible = aimle.from_milp(optimize.LinearConstraint(np.array([weights]), lb=99))
    with pytest.raises(aimle.SolverError, match=r"milp found no solution: .*infeasible"):
        impossible(scores_of(1, 5))
    layer = aimle.AIMLE(aimle.from_milp(budget))
    assert layer.noise == aimle.Normal(), "solutions may vary in size"
    assert "sizes" in layer.state_dict(), "the layer finds out whether they do"
    relaxed = aimle.from_milp(budget, integrality=0, fractional=True)
    z = relaxed(torch.ones(1, 5))
    assert z.frac().count_nonzero() > 0


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"constraints": "x"}, TypeError, "constraints to be .*LinearConstraint.* but got 'x'"),
        ({"constraints": [3]}, TypeError, r"constraints to be .*LinearConstraint.* but got \[3\]"),
        ({"bounds": "x"}, TypeError, r"bounds to be \(lower, upper\) or .* but got 'x'"),
        ({"bounds": (0, 1, 2)}, TypeError, r"bounds to be .* but got \(0, 1, 2\)"),
        ({"bounds": (0, "x")}, TypeError, r"bounds to be .* but got \(0, 'x'\)"),
        ({"integrality": "x"}, ValueError, "integrality to be 0, 1, 2 or 3.* but got 'x'"),
        ({"integrality": [1, 7]}, ValueError, r"integrality to be .* but got \[1, 7\]"),
        ({"options": 3}, TypeError, "options to be a dict or None but got int"),
        ({"sense": None}, ValueError, "sense to be 'max' or 'min' but got None"),
    ],
)
def test_wrong_programs_are_refused_at_once(settings: dict, error: type[Exception], message: str):
    pytest.importorskip("scipy")
    with pytest.raises(error, match=rf"\[aimle.from_milp\] expected {message}"):
        aimle.from_milp(**{"constraints": None, **settings})


def test_milp_takes_every_form_of_constraints_and_bounds():
    optimize = pytest.importorskip("scipy.optimize")
    row, scores = [[3, 1, 4, 1, 5]], scores_of(4, 5)
    expected = aimle.Knapsack(row[0], 7)(scores)
    one = optimize.LinearConstraint(np.array(row), ub=7)
    for constraints in (one, [one], (one, one), iter([one]), [(row, 0, 7)], (row, 0, 7)):
        assert torch.equal(aimle.from_milp(constraints)(scores), expected)
    for bounds in ([0, 1], (np.zeros(5), np.ones(5)), optimize.Bounds(0, 1)):
        assert torch.equal(aimle.from_milp(one, bounds=bounds)(scores), expected)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"graph": "x"}, TypeError, "graph to be a NetworkX graph but got str"),
        ({"algorithm": 3}, TypeError, "algorithm to be callable but got int"),
        ({"weight": 3}, TypeError, "weight to be a str but got int"),
        ({"sense": "least"}, ValueError, "sense to be 'max' or 'min' but got 'least'"),
    ],
)
def test_a_wrong_graph_or_algorithm_is_refused_at_once(
    settings: dict, error: type[Exception], message: str
):
    networkx = pytest.importorskip("networkx")
    given = {"graph": networkx.path_graph(3), "algorithm": networkx.minimum_spanning_tree}
    with pytest.raises(error, match=rf"\[aimle.from_networkx\] expected {message}"):
        aimle.from_networkx(**(given | settings))


def test_networkx():
    networkx = pytest.importorskip("networkx")
    graph = networkx.grid_2d_graph(3, 3)
    ends = {"source": (0, 0), "target": (2, 2)}
    algorithm = functools.partial(networkx.shortest_path, weight="weight", **ends)
    solver = aimle.from_networkx(graph, algorithm, returns="path")
    numbers = {node: i for i, node in enumerate(graph)}
    edges = [(numbers[u], numbers[v]) for u, v in graph.edges]
    native = aimle.GraphPath(edges, 0, 8, directed=False)
    assert_trains_like(solver, native, 3 + scores_of(4, len(edges)).abs())

    complete = networkx.complete_graph(5)
    tree = aimle.from_networkx(complete, networkx.maximum_spanning_tree, sense="max")
    x = scores_of(6, 10)
    assert torch.equal(tree(x), aimle.SpanningTree(5)(x))
    assert "weight" not in complete.edges[0, 1]
    listed = functools.partial(networkx.maximum_spanning_edges, keys=True, data=False)
    parallel = networkx.MultiGraph([(0, 1), (0, 1), (1, 2)])
    z = aimle.from_networkx(parallel, listed, sense="max")(torch.tensor([[1.0, 2.0, 0.5]]))
    assert z.tolist() == [[0, 1, 1]]
    with pytest.raises(ValueError, match="parallel edges"):
        aimle.from_networkx(parallel, algorithm, returns="path")


@pytest.mark.parametrize(
    ("returns", "found", "message"),
    [
        ("edges", [0, 1], "return edges of the graph but got 0, .*: set returns='path' for"),
        ("edges", [(0, 2)], r"return edges of the graph but got \(0, 2\), which is not an edge"),
        ("edges", "ab", "return edges of the graph but got 'a', .*: set returns='path' for"),
        (
            "path",
            [(0, 1), (1, 2)],
            r"return a path .* but got \(\(0, 1\), \(1, 2\)\), .*='edges' for",
        ),
        ("path", [0, 2], r"return a path over nodes but got \(0, 2\), which is not an edge"),
    ],
)
def test_an_algorithm_that_returns_something_else_is_named(returns: str, found, message: str):
    networkx = pytest.importorskip("networkx")
    graph = networkx.path_graph(3)
    solver = aimle.from_networkx(graph, lambda _: found, returns=returns)
    with pytest.raises(aimle.SolverError, match=f"expected algorithm to {message}"):
        solver(torch.ones(1, 2))


def test_threads_take_turns_with_a_graph():
    networkx = pytest.importorskip("networkx")
    together, met = threading.Barrier(2), []

    def cheapest_edge(graph) -> list[tuple[int, int]]:
        with contextlib.suppress(threading.BrokenBarrierError):
            together.wait(timeout=0.5)
            met.append("two calls at once")
        return [min(graph.edges, key=lambda edge: graph.edges[edge]["weight"])]

    graph = networkx.path_graph(4)
    with aimle.from_networkx(graph, cheapest_edge, workers=2, pool="threads") as solver:
        z = solver(torch.eye(3) - 1)
        assert z.sum(1).tolist() == [1, 1, 1]
    assert met == []


def test_cp_sat():
    cp_model = need("ortools.sat.python.cp_model")
    model, weights = cp_model.CpModel(), [3, 1, 4, 1, 5]
    items = [model.new_bool_var(f"item {i}") for i in range(5)]
    model.add(sum(w * item for w, item in zip(weights, items, strict=True)) <= 7)
    solver = aimle.from_cp_sat(model, items)
    assert_trains_like(solver, aimle.Knapsack(weights, 7), scores_of(4, 5))
    with aimle.from_cp_sat(model, items, workers=1) as elsewhere:
        x = scores_of(3, 5)
        assert torch.equal(elsewhere(x), solver(x))
    model.add(sum(items) > 5)
    with pytest.raises(aimle.SolverError, match="CP-SAT found no solution: INFEASIBLE"):
        aimle.from_cp_sat(model, items)(x)
    for wrong in (("x", items), (model, 3), (model, [0, 1]), (model, items, {"parameters": 3})):
        with pytest.raises(
            TypeError, match=r"\[aimle.from_cp_sat\] expected (model|variables|parameters) to be"
        ):
            aimle.from_cp_sat(*wrong[:2], **(wrong[2] if len(wrong) > 2 else {}))
    assert torch.equal(solver(x), aimle.Knapsack(weights, 7)(x))  # a copy of its own


class TwoOfAll:
    """What PyEPO's models have, without PyEPO."""

    modelSense = -1  # noqa: N815

    def setObj(self, costs):  # noqa: N802
        self.costs = costs

    def solve(self):
        z = np.zeros(len(self.costs), dtype=np.float32)
        z[np.argsort(-self.costs, kind="stable")[:2]] = 1
        return z, float(z @ self.costs)


def test_whatever_looks_like_a_model_of_pyepo():
    assert_trains_like(aimle.from_pyepo(TwoOfAll()), aimle.TopK(2), scores_of(4, 5))
    with pytest.raises(TypeError, match="int, which has no setObj, solve, modelSense"):
        aimle.from_pyepo(3)
    with pytest.raises(
        TypeError, match="expected optmodel to be a PyEPO model but got the class TwoOfAll itself"
    ):
        aimle.from_pyepo(TwoOfAll)
    model = TwoOfAll()
    model.modelSense = "min"
    with pytest.raises(ValueError, match=r"modelSense to be 1 \(min\) or -1 \(max\) but got 'min'"):
        aimle.from_pyepo(model)


def test_pyepo():
    need("pyepo")
    need("ortools")
    from pyepo.model.ort import knapsackModel, shortestPathModel

    model = shortestPathModel((3, 3))
    native = aimle.DagPath(model.arcs, 0, 8)
    costs = 3 + scores_of(4, len(model.arcs)).abs()
    solver = aimle.from_pyepo(model)
    assert solver.sense == "min"
    z = solver(costs)
    assert torch.equal(z, native(-costs) if native.sense == "max" else native(costs))
    weights = [3, 1, 4, 1, 5]
    knapsack = knapsackModel(weights=np.array([weights]), capacity=[7])
    x = scores_of(4, 5).abs()
    with aimle.from_pyepo(knapsack, workers=1) as elsewhere:
        assert torch.equal(elsewhere(x), aimle.Knapsack(weights, 7)(x))
    cut = aimle.from_pyepo(knapsack.addConstr(np.ones(5), 1))
    expected = aimle.TopK(1)(x)
    for each in (cut, copy.deepcopy(cut)):
        assert torch.equal(each(x), expected)


def test_the_comparison_with_pyepo_fills_its_table():
    need("pyepo")
    need("ortools")
    program = [sys.executable, str(ROOT / "benchmarks" / "pyepo_comparison.py")]
    folder = str(Path(aimle.__file__).parents[1])
    result = subprocess.run(
        [*program, "--calls", "120", "--seeds", "1", "--problems", "path"],
        env={**os.environ, "PYTHONPATH": folder},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    table = [line.split(" | ") for line in result.stdout.splitlines()]
    assert [row[1] for row in table[2:]] == ["DBB", "IMLE", "AIMLE", "PFY", "SPO+"]
    assert all("times faster" in row[-1] for row in table[2:-1])


@pytest.mark.parametrize(
    ("make", "extra"),
    [
        (lambda: aimle.from_cp_sat(None, []), "ortools"),
        (lambda: aimle.from_milp(None), "scipy"),
        (lambda: aimle.per_instance(len, workers=1, pool="ray")(torch.ones(1, 2)), "ray"),
    ],
)
def test_what_is_not_installed_is_named(make, extra: str, monkeypatch):
    for module in ("ortools.sat.python.cp_model", "scipy.optimize", "ray"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"pip install aimle\[{extra}\]"):
        make()
