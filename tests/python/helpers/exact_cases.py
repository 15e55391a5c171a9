"""Helpers for tests of exact distributions: structures small enough to enumerate."""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import mpmath
import networkx as nx
import oracles
import pytest
import torch
from torch import Tensor

import aimle
from aimle import exact


def seeded(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    generator = torch.Generator("cpu").manual_seed(seed)
    x = torch.randn(*shape, generator=generator, dtype=torch.float64, device="cpu")
    return scale * x.to(torch.get_default_device())


def assert_equal_to_multiprecision(solver: aimle.Solver, structures: Tensor) -> None:
    """Log-partition, marginals and covariances are sums over structures [N, *instance] to the last
    digits, for scores of +-30 and more, where most of the weight is on one."""
    shape = structures.shape[1:]
    listed = [z.nonzero().flatten().tolist() for z in structures.flatten(1)]
    for seed in range(3):
        x, v = seeded(*shape, seed=seed, scale=30.0), seeded(*shape, seed=3 + seed)
        n, scores, values = x.numel(), x.flatten().tolist(), v.flatten().tolist()
        with mpmath.workdps(80):
            weights = [mpmath.exp(mpmath.fsum(scores[j] for j in z)) for z in listed]
            partition = mpmath.fsum(weights)
            p = [weight / partition for weight in weights]
            along = [mpmath.fsum(values[j] for j in z) for z in listed]
            mean = mpmath.fdot(p, along)
            mu, cov = [mpmath.mpf(0)] * n, [mpmath.mpf(0)] * n
            for z, probability, value in zip(listed, p, along, strict=True):
                for j in z:
                    mu[j] += probability
                    cov[j] += probability * (value - mean)
            log_partition = float(mpmath.log(partition))
            wanted = [
                torch.tensor([*map(float, each)], dtype=torch.float64).view(shape)
                for each in (mu, cov)
            ]
        assert exact.log_partition(solver, x).item() == pytest.approx(log_partition, rel=1e-14)
        torch.testing.assert_close(exact.marginals(solver, x), wanted[0], rtol=1e-12, atol=1e-300)
        torch.testing.assert_close(
            exact.covariance(solver, x, v), wanted[1], rtol=1e-11, atol=1e-14
        )


def subsets(n: int, k: int) -> Tensor:
    chosen = list(itertools.combinations(range(n), k))
    z = torch.zeros(len(chosen), n, dtype=torch.float64)
    for row, entries in zip(z, chosen, strict=True):
        row[list(entries)] = 1
    return z


def trees(n: int) -> Tensor:
    """Those sets of n - 1 edges that reach every vertex."""
    found = []
    for z in subsets(n * (n - 1) // 2, n - 1):
        chosen = [edge for edge, used in zip(oracles.edges(n), z.tolist(), strict=True) if used]
        graph = nx.Graph(chosen)
        if len(graph) == n and nx.is_connected(graph):
            found.append(z)
    return torch.stack(found)


def flips(n: int) -> Tensor:
    return torch.tensor(list(itertools.product((0.0, 1.0), repeat=n)), dtype=torch.float64)


def directed(z: Tensor, n: int) -> Tensor:
    position = {edge: index for index, edge in enumerate(oracles.edges(n))}
    return z[:, [position[min(arc), max(arc)] for arc in oracles.arcs(n)]]


WEIGHTS = [3, 1, 4, 1, 5, 2, 6]


def sets(weights: list[int], capacity: int) -> Tensor:
    """Those sets of items that fit."""
    every = torch.tensor(list(itertools.product([0, 1], repeat=len(weights))), dtype=torch.float64)
    return every[every @ torch.tensor(weights, dtype=torch.float64) <= capacity]


DAG = oracles.edges(5)


def paths(edges: list[tuple[int, int]], source: int, target: int) -> Tensor:
    """Those of a graph without cycles."""
    index = {edge: j for j, edge in enumerate(edges)}
    z = []
    for path in nx.all_simple_paths(nx.DiGraph(edges), source, target):
        z.append(torch.zeros(len(edges), dtype=torch.float64))
        z[-1][[index[step] for step in itertools.pairwise(path)]] = 1
    return torch.stack(z)


class Structure(NamedTuple):
    """A solver, the number of entries of a row, and all its structures."""

    solver: aimle.Solver
    n: int
    build: Callable[[], Tensor]


STRUCTURES = {
    "categorical": Structure(aimle.Argmax(), 6, lambda: torch.eye(6, dtype=torch.float64)),
    "k_subset": Structure(aimle.TopK(3), 7, lambda: subsets(7, 3)),
    "knapsack": Structure(aimle.Knapsack(WEIGHTS, 9), 7, lambda: sets(WEIGHTS, 9)),
    "tree": Structure(aimle.SpanningTree(5), 10, lambda: trees(5)),
    "directed_tree": Structure(aimle.SpanningTree(4), 12, lambda: directed(trees(4), 4)),
    "dag": Structure(aimle.DagPath(DAG, 0, 4), 10, lambda: paths(DAG, 0, 4)),
    "bernoulli": Structure(aimle.Bernoulli(), 6, lambda: flips(6)),
}

each_structure = pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)
