"""Paths over graphs: compared with NetworkX, one graph per row, and errors."""

import pickle

import networkx as nx
import numpy as np
import oracles
import pytest
import torch
from torch import Tensor

import aimle
from aimle import exact

DIAMOND = [(0, 1), (1, 3), (0, 2), (2, 3), (0, 3)]


def drawn(edges: int, *batch: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 0.1 + torch.rand(*batch, edges, generator=generator, dtype=torch.float64)


def random_graph(seed: int, directed: bool) -> nx.Graph:
    """With a path from its first to its last node, under names."""
    graph = nx.gnm_random_graph(30, 120, seed=seed, directed=directed)
    nx.add_path(graph, [0, 7, 13, 21, 29])
    return nx.relabel_nodes(graph, lambda v: f"node {v}")


@pytest.mark.parametrize("directed", [True, False])
def test_agrees_with_networkx(directed: bool, device: torch.device):
    for seed in range(20):
        graph = random_graph(seed, directed)
        source, target = "node 0", "node 29"
        costs = drawn(graph.number_of_edges(), 10, seed=seed)
        solver = aimle.GraphPath.from_networkx(graph, source, target)
        z = solver(costs.to(device)).cpu()
        for row, chosen in zip(costs, z, strict=True):
            nx.set_edge_attributes(graph, dict(zip(graph.edges, row.tolist(), strict=True)), "cost")
            length = nx.shortest_path_length(graph, source, target, weight="cost")
            assert (row * chosen).sum().item() == pytest.approx(length, rel=1e-12)
            used = graph.edge_subgraph(
                [edge for edge, is_in in zip(graph.edges, chosen, strict=True) if is_in]
            )
            assert nx.has_path(used, source, target)


def test_agrees_with_scipy_on_a_large_grid(device: torch.device):
    edges = oracles.grid_graph(30, 30, oracles.KING)
    solver = aimle.GraphPath(edges, 0, 899)
    costs = drawn(len(edges), 20)
    expected = np.stack([oracles.graph_path(row, edges, 0, 899) for row in costs.numpy()])
    assert torch.equal(solver(costs.to(device)).cpu(), torch.from_numpy(expected))


def test_longest_paths_over_graphs_whose_vertices_have_any_numbers(device: torch.device):
    """By AIMLE's senses too: the best of scores, the cheapest of costs below zero."""
    for seed in range(20):
        graph = nx.gnm_random_graph(20, 80, seed=seed)
        name = np.random.default_rng(seed).permutation(20)
        edges = [(int(name[u]), int(name[v])) for u, v in graph.edges]  # ascending before
        source, target = int(name[0]), int(name[19])
        if not nx.has_path(nx.DiGraph(edges), source, target):
            continue
        solver = aimle.DagPath(edges, source, target)
        scores = drawn(len(edges), 5, seed=seed) - 0.6
        expected = np.stack(
            [oracles.dag_path(row, edges, source, target) for row in scores.numpy()]
        )
        assert torch.equal(solver(scores.to(device)).cpu(), torch.from_numpy(expected))
        layer = aimle.IMLE(solver, sense="min", noise=None, lambda_=1.0).to(device)
        assert torch.equal(layer(-scores.to(device)).squeeze(1).cpu(), torch.from_numpy(expected))


def test_ends_of_every_row_its_own(device: torch.device):
    edges = oracles.grid_graph(5, 6, oracles.KING)
    source, target = torch.arange(12), torch.arange(12) * 2 + 3
    costs = drawn(len(edges), 12)
    together = aimle.GraphPath(edges, source, target)
    assert together.data.shape == (12, 30 + 3 + 2 * len(edges))
    z = together(costs.to(device)).cpu()
    for i in range(12):
        alone = aimle.GraphPath(edges, int(source[i]), int(target[i]))
        assert torch.equal(alone(costs[i]), z[i])
        assert torch.equal(together(costs[i], data=alone.data), z[i])


def test_graphs_of_every_row_their_own(device: torch.device):
    dags = [aimle.DagPath(e, 0, 3) for e in (DIAMOND, [(2, 1), (1, 3), (0, 2), (2, 3), (0, 3)])]
    scores = drawn(5, 2) - 0.5
    data = torch.stack([dag.data for dag in dags])
    z = dags[0](scores.to(device), data=data.to(device)).cpu()
    mu = exact.marginals(dags[0], scores, data=data)
    for i, dag in enumerate(dags):
        assert torch.equal(z[i], dag(scores[i]))
        torch.testing.assert_close(mu[i], exact.expected(dag, scores[i], lambda z: z))


def test_ties_loops_and_parallel_edges():
    solver = aimle.GraphPath([(0, 0), (0, 1), (0, 1), (1, 0), (1, 2), (0, 2)], 0, 2)
    assert solver(torch.tensor([0.0, 0, 0, 0, 0, 0])).tolist() == [0, 0, 0, 0, 0, 1]
    assert solver(torch.tensor([0.0, 1, 1, 0, 1, 9])).tolist() == [0, 1, 0, 0, 1, 0]
    assert aimle.GraphPath(DIAMOND, 2, 2)(torch.ones(5)).tolist() == [0] * 5
    assert aimle.GraphPath([], 0, 0)(torch.ones(3, 0)).shape == (3, 0)
    assert aimle.GraphPath([], [], [])(torch.ones(0, 0)).shape == (0, 0)


def test_costs_below_zero_are_clipped_and_counted():
    solver = aimle.GraphPath(DIAMOND, 0, 3)
    assert solver.has_costs
    assert solver.has_costs
    layer = aimle.AIMLE(solver)
    assert (layer.difference, layer.noise) == ("forward", aimle.Normal())
    z = layer(torch.full((4, 5), 0.01, requires_grad=True))
    z.neg().sum().backward()
    assert layer.stats()["clipped_share"] > 0.1
    refusing = aimle.GraphPath(DIAMOND, 0, 3, negative="error")
    with pytest.raises(ValueError, match=r"expected costs >= 0"):
        refusing(-torch.ones(5))
    with pytest.raises(ValueError, match="expected sense='min' for GraphPath"):
        aimle.AIMLE(solver, sense="max")


def test_what_is_refused(device: torch.device):
    solver = aimle.GraphPath(DIAMOND, 0, 3)
    ones = torch.ones(2, 5, device=device)

    def status(scores: Tensor, given: aimle.Solver = solver, **call) -> list[str]:
        got = aimle.solve(given, scores, return_status=True, **call)[1]
        return [aimle.Status(code).name for code in got.tolist()]

    walls = torch.tensor([True, False, True, False, False], device=device)
    assert status(ones, mask=walls) == ["DISCONNECTED"] * 2
    assert status(ones, aimle.GraphPath(DIAMOND, 3, 0)) == ["DISCONNECTED"] * 2
    assert status(ones * torch.nan) == ["NAN"] * 2
    for place, number in ((0, 4), (1, -1), (2, 1), (4, 99), (8, -7), (15, 5)):
        data = solver.data.clone()
        data[place] = number
        assert status(ones, data=data.to(device)) == ["BAD_DATA"] * 2, place
    descending = aimle.GraphPath([(v, u) for u, v in DIAMOND], 3, 0)
    dag = aimle.DagPath(DIAMOND, 0, 3)
    assert status(ones, dag, data=descending.data.to(device)) == ["BAD_DATA"] * 2
    with pytest.raises(ValueError, match=r"7 \+ 2 arcs numbers for vertices=4, but got 16"):
        solver(ones, data=torch.zeros(16, dtype=torch.int64, device=device))
    with pytest.raises(ValueError, match="no exact distribution in closed form"):
        torch.ops.aimle.marginals(ones, solver.text, row_data=solver.data.to(device))


def test_theta_of_another_length_is_refused():
    solver = aimle.GraphPath(DIAMOND, 0, 3)
    message = r"expected scores of the 5 edges, \[\*batch, 5\], but got shape \[2, 4\]"
    for call in (solver, aimle.AIMLE(solver), lambda x: exact.marginals(solver, x)):
        with pytest.raises(ValueError, match=message):
            call(torch.ones(2, 4))
    with pytest.raises(ValueError, match=r"data are invalid: .* a graph has a vertex or an edge"):
        solver(torch.ones(4), data=solver.data)


def test_the_number_of_vertices_may_be_a_tensor():
    edges = torch.tensor(DIAMOND)
    assert aimle.GraphPath(edges, 0, 3, edges.max() + 2) == aimle.GraphPath(edges, 0, 3, 5)


@pytest.mark.parametrize("cls", [aimle.GraphPath, aimle.DagPath])
def test_bad_settings(cls: type):
    for arguments, error, message in (
        (([(0, 1, 2)], 0, 1), ValueError, r"pairs \(tail, head\) of shape \[E, 2\] but got shape"),
        (([(0.5, 1.0)], 0, 1), TypeError, "edges to be vertex numbers"),
        (([(0, -1)], 0, 1), ValueError, "edges to be vertices from 0 to 1 but got -1"),
        (([(0, 1)], 0, 5, 3), ValueError, "target to be vertices from 0 to 2 but got 5: set num_"),
        (("ab", 0, 1), TypeError, r"edges to be vertex numbers, integers, but got 'ab'"),
        ((None, 0, 1), TypeError, "edges to be vertex numbers, integers, but got None"),
        (([(0, 1), (1,)], 0, 1), TypeError, r"edges to be .* but got \[\(0, 1\), \(1,\)\]"),
        ((DIAMOND, "a", 3), TypeError, "source to be vertex numbers, integers, but got 'a'"),
        ((DIAMOND, 0, None), TypeError, "target to be vertex numbers, integers, but got None"),
        ((DIAMOND, 0, 3, "4"), TypeError, "num_vertices to be an int but got str"),
        ((DIAMOND, 0, 3, 4.5), TypeError, "num_vertices to be an int but got float"),
        ((DIAMOND, 0, 3, 0), ValueError, "num_vertices >= 1 but got num_vertices=0"),
        (
            ([DIAMOND] * 2, [0, 0, 0], 3),
            ValueError,
            r"a source and a target for every graph but got edges of shape \[2, 5, 2\], source of "
            r"shape \[3\] and target of shape \[\]",
        ),
    ):
        with pytest.raises(error, match=message):
            cls(*arguments)
    with pytest.raises(ValueError, match="source to be a node of the graph but got 'x'"):
        cls.from_networkx(nx.DiGraph(DIAMOND), "x", 3)
    with pytest.raises(ValueError, match=r"target to be a node of the graph but got \[3\]"):
        cls.from_networkx(nx.DiGraph(DIAMOND), 0, [3])
    for graph, got in (("x", "str"), (DIAMOND, "list"), (nx.DiGraph, "type")):
        with pytest.raises(TypeError, match=f"expected graph to be a NetworkX graph but got {got}"):
            cls.from_networkx(graph, 0, 3)
    with pytest.raises(TypeError, match="directed to be True or False but got 1"):
        aimle.GraphPath(DIAMOND, 0, 3, directed=1)
    for edges in ([(0, 1), (1, 2), (2, 1)], [(1, 1)]):
        with pytest.raises(ValueError, match="graph without cycles but the edge"):
            aimle.DagPath(edges, 0, 1)
    with pytest.raises(ValueError, match="expected a directed graph"):
        aimle.DagPath.from_networkx(nx.Graph(DIAMOND), 0, 3)


def test_structures_and_exact_expectations_of_graphs_with_cycles():
    solver = aimle.GraphPath([*DIAMOND, (2, 1), (1, 2)], 0, 3)
    costs = drawn(7).requires_grad_()
    z = exact.structures(solver, costs)
    assert z.shape == (5, 7)
    p = torch.softmax(-(z.double() @ costs), -1)
    torch.testing.assert_close(exact.marginals(solver, costs), p @ z.double())


@pytest.mark.parametrize("cls", [aimle.GraphPath, aimle.DagPath])
def test_diagnose_knows_them(cls: type):
    d = drawn(5, seed=1) - 0.6
    settings = {"estimators": ["aimle"], "nb_samples": (1,), "truth_samples": 2000}
    found = aimle.diagnose(
        aimle.AIMLE(cls(DIAMOND, 0, 3)), drawn(5, 4), lambda z: (z * d).sum(-1), **settings
    )
    assert {row["estimator"] for row in found.rows} >= {"aimle", "your layer"}


@pytest.mark.parametrize("cls", [aimle.GraphPath, aimle.DagPath])
def test_compiled_and_pickled(cls: type, device: torch.device):
    solver = cls(DIAMOND, 0, 3)
    assert pickle.loads(pickle.dumps(solver)) == solver
    assert solver != cls(DIAMOND, 0, 2)
    assert repr(solver).startswith(f"{cls.__name__}(edges=")
    layer = aimle.IMLE(solver, lambda_=1.0, noise=None).to(device)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    theta = drawn(5, 4).to(device)
    assert torch.equal(compiled(theta), layer(theta))
