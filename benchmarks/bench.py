"""Compares solvers and noise with common alternatives: `make bench`.

Every row first checks the result, then times both sides alternately in the same run and prints the
ratio of the medians next to the target ratio. This is not a test: no row fails for being slow.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import torch
from comparison import Row, measure
from path_rows import chain_rows, graph_rows, lattice_rows, neighbours
from subset_rows import arborescence_rows, assignment_rows, bernoulli_rows, knapsack_rows

import aimle

# ---- noise ---------------------------------------------------------------------------------------


def _same_moments(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    """Means of two samples agree within six standard errors, deviations within 5 %."""
    error = (theirs.var() / theirs.numel() + ours.var() / ours.numel()).sqrt()
    assert (ours.mean() - theirs.mean()).abs() < 6 * error
    assert (ours.std() / theirs.std() - 1).abs() < 0.05


def _direct_sum_of_gamma(k: int, iterations: int, shape: tuple[int, ...]) -> torch.Tensor:
    total = torch.zeros(shape)
    for i in range(1, iterations + 1):
        total += torch.distributions.Gamma(1.0 / k, i / k).sample(shape)
    return (total - np.log(iterations)) / k


def _noise_row(noise: object, peer: Callable[[tuple[int, ...]], torch.Tensor], aim: float) -> Row:
    shape, key = (2000, 20), torch.tensor([1, 2])

    def ours() -> torch.Tensor:
        return aimle.sample_noise(noise, shape, key)

    def theirs() -> torch.Tensor:
        return peer(shape)

    name = f"{noise} {list(shape)}"
    check = lambda: _same_moments(ours(), theirs())  # noqa: E731
    return Row(name, "torch.distributions", ours, theirs, check, aim)


def noise_rows() -> list[Row]:
    zero, one = torch.tensor(0.0), torch.tensor(1.0)
    logit = torch.distributions.transforms.SigmoidTransform().inv
    logistic = torch.distributions.TransformedDistribution(
        torch.distributions.Uniform(zero, one), [logit]
    )
    return [
        _noise_row(aimle.Gumbel(), torch.distributions.Gumbel(zero, one).sample, 1),
        _noise_row(aimle.Normal(), torch.distributions.Normal(zero, one).sample, 1),
        _noise_row(aimle.Logistic(), logistic.sample, 1),
        _noise_row(aimle.SumOfGamma(10), lambda shape: _direct_sum_of_gamma(10, 10, shape), 300),
    ]


# ---- top-k ---------------------------------------------------------------------------------------


def _topk_row(rows: int, n: int, k: int, aim: float) -> Row:
    scores = torch.randn(rows, n, generator=torch.Generator().manual_seed(n))

    def ours() -> torch.Tensor:
        return aimle.solve(aimle.TopK(k), scores)

    def theirs() -> torch.Tensor:
        return torch.zeros_like(scores).scatter_(1, scores.topk(k).indices, 1.0)

    check = lambda: torch.testing.assert_close(ours(), theirs(), rtol=0, atol=0)  # noqa: E731
    return Row(f"{k} of {n:,}, {rows:,} rows", "torch.topk + scatter", ours, theirs, check, aim)


def topk_rows() -> list[Row]:
    return [
        _topk_row(20_000, 20, 10, 5),
        _topk_row(2_000, 350, 10, 5),
        _topk_row(1, 1_000_000, 10, 3),
    ]


# ---- spanning trees ------------------------------------------------------------------------------


def _tree_row(count: int, vertices: int, aim: float) -> Row:
    from scipy.sparse.csgraph import minimum_spanning_tree

    upper = np.triu_indices(vertices, 1)
    scores = torch.rand(count, len(upper[0]), generator=torch.Generator().manual_seed(vertices))
    weights = np.zeros((count, vertices, vertices))
    weights[:, upper[0], upper[1]] = 2.0 - scores.double().numpy()

    def ours() -> torch.Tensor:
        return aimle.solve(aimle.SpanningTree(vertices), scores)

    def theirs() -> list:
        return [minimum_spanning_tree(w) for w in weights]

    def check() -> None:
        mine = ((2.0 - scores.double()) * ours()).sum(1)
        np.testing.assert_allclose(mine.numpy(), [tree.sum() for tree in theirs()], rtol=1e-6)

    return Row(f"{count} trees of {vertices} vertices", "SciPy in a loop", ours, theirs, check, aim)


def tree_rows() -> list[Row]:
    return [_tree_row(128, 10, 1000), _tree_row(128, 30, 100)]


# ---- grid paths ----------------------------------------------------------------------------------


def _grid_rows(count: int, size: int) -> list[Row]:
    import networkx as nx
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    cells = size * size
    costs = torch.rand(count, size, size, generator=torch.Generator().manual_seed(size)) + 0.1
    flat = costs.flatten(1).double().numpy()
    source, target = neighbours(size)
    graphs = [csr_matrix((cost[target], (source, target)), shape=(cells, cells)) for cost in flat]
    networks = [nx.from_scipy_sparse_array(graph, create_using=nx.DiGraph) for graph in graphs]

    def ours() -> torch.Tensor:
        return aimle.solve(aimle.GridPath(), costs)

    def scipy() -> list[float]:
        return [dijkstra(graph, indices=0)[-1] for graph in graphs]

    def networkx() -> list[float]:
        return [nx.dijkstra_path_length(network, 0, cells - 1) for network in networks]

    def check(theirs: Callable[[], list[float]]) -> None:
        mine = (costs.double() * ours()).flatten(1).sum(1).numpy()
        np.testing.assert_allclose(mine - flat[:, 0], theirs(), rtol=1e-5)

    name = f"{count} paths on {size} x {size}"
    return [
        Row(name, "NetworkX in a loop", ours, networkx, lambda: check(networkx), 300),
        Row(name, "SciPy in a loop", ours, scipy, lambda: check(scipy), 10),
    ]


def grid_rows() -> list[Row]:
    return _grid_rows(70, 12) + _grid_rows(20, 30)


ROOMS = {
    "noise": noise_rows,
    "topk": topk_rows,
    "trees": tree_rows,
    "grids": grid_rows,
    "graphs": graph_rows,
    "chains": chain_rows,
    "lattices": lattice_rows,
    "assignments": assignment_rows,
    "arborescences": arborescence_rows,
    "bernoulli": bernoulli_rows,
    "knapsacks": knapsack_rows,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooms", nargs="*", default=list(ROOMS), help=f"of {', '.join(ROOMS)}")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    unknown = set(options.rooms) - set(ROOMS)
    if unknown:
        parser.error(f"unknown {', '.join(sorted(unknown))}; choose from {', '.join(ROOMS)}")
    torch.set_num_threads(options.threads)

    print(f"{options.threads} threads, torch {torch.__version__}; medians of alternating rounds")
    print(f"{'task':36}{'aimle':>12}   {'compared with':22}{'':>12}{'ratio':>10}{'aim':>8}")
    for room in options.rooms:
        for row in ROOMS[room]():
            ours, theirs = measure(row)
            print(
                f"{row.name:36}{ours * 1e3:9.4f} ms   {row.instead:22}{theirs * 1e3:9.4f} ms"
                f"{theirs / ours:9.1f}x{row.aim:7.0f}x",
                flush=True,
            )


if __name__ == "__main__":
    main()
