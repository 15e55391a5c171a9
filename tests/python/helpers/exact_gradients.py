"""Exact expectations under perturb-and-MAP and under exponential families, by enumeration.

And what the tests of estimators do with them: replicas of a gradient, held against the exact one.

Everything is float64 and differentiable in theta, so that autograd gives the exact gradient of
E f(z) for any f.
"""

import itertools
import math
from collections.abc import Callable

import torch
from torch import Tensor

import aimle

Loss = Callable[[Tensor], Tensor]

DISTRIBUTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gumbel": lambda u: torch.exp(-torch.exp(-u)),
    "logistic": torch.sigmoid,
    "normal": lambda u: 0.5 * torch.erfc(-u / math.sqrt(2)),
}
DENSITIES: dict[str, Callable[[Tensor], Tensor]] = {
    "gumbel": lambda u: torch.exp(-u - torch.exp(-u)),
    "logistic": lambda u: torch.sigmoid(u) * torch.sigmoid(-u),
    "normal": lambda u: torch.exp(-0.5 * u * u) / math.sqrt(2 * math.pi),
}


def subsets(n: int, k: int) -> Tensor:
    """All 0/1 vectors with k ones, [count, n]."""
    rows = [
        [float(j in chosen) for j in range(n)] for chosen in itertools.combinations(range(n), k)
    ]
    return torch.tensor(rows, dtype=torch.float64)


def subset_probabilities(theta: Tensor, k: int, noise: str, tau: float = 1.0) -> Tensor:
    """P(top-k of theta + tau eps = z) for every z of ``subsets``, by quadrature."""
    grid = torch.arange(-20.0, 40.0, 0.05, dtype=torch.float64)[:, None]
    u = (grid - theta) / tau  # [points, n]
    below, density = DISTRIBUTIONS[noise](u), DENSITIES[noise](u) / tau
    result = []
    for z in subsets(len(theta), k).bool():
        inside = z.nonzero()[:, 0]
        others_below = below[:, ~z].prod(-1)
        total = 0.0
        for i in inside:
            above = (
                torch.stack([1 - below[:, j] for j in inside if j != i], -1).prod(-1)
                if (len(inside) > 1)
                else 1.0
            )
            total = total + (density[:, i] * above * others_below).sum() * 0.05
        result.append(total)
    return torch.stack(result)


def trees(vertices: int) -> Tensor:
    """All spanning trees of the complete graph as undirected edge vectors, [count, edges]."""
    edges = list(itertools.combinations(range(vertices), 2))
    rows = []
    for chosen in itertools.combinations(range(len(edges)), vertices - 1):
        component = list(range(vertices))
        for e in chosen:
            i, j = (component[v] for v in edges[e])
            component = [i if c == j else c for c in component]
        if len(set(component)) == 1:
            rows.append([float(e in chosen) for e in range(len(edges))])
    return torch.tensor(rows, dtype=torch.float64)


def flips(n: int) -> Tensor:
    """All 0/1 vectors, [2^n, n]."""
    return torch.tensor(list(itertools.product((0.0, 1.0), repeat=n)), dtype=torch.float64)


def chains(steps: int, labels: int) -> Tensor:
    """All label sequences as edges of every step, [count, steps * labels * labels]."""
    rows = []
    for sequence in itertools.product(range(labels), repeat=steps + 1):
        z = torch.zeros(steps, labels, labels, dtype=torch.float64)
        for t, (i, j) in enumerate(itertools.pairwise(sequence)):
            z[t, i, j] = 1
        rows.append(z.flatten())
    return torch.stack(rows)


def chain_probabilities(theta: Tensor, tau: float = 1.0) -> Tensor:
    """P(best sequence of theta + tau Gumbel = z) for every z of ``chains(2, 2)``.

    Given the middle label the ends are independent argmaxes, whose maxima are Gumbel again; the
    middle label wins by the sum of two logistic variables.
    """
    first, second = (theta / tau).reshape(2, 2, 2)
    value = first.logsumexp(0) + second.logsumexp(1)  # by middle label
    y = torch.arange(-40.0, 40.0, 0.02, dtype=torch.float64)
    density = torch.sigmoid(y) * torch.sigmoid(-y) * 0.02
    zero = (torch.sigmoid(value[0] - value[1] - y) * density).sum()
    middle = torch.stack([zero, 1 - zero])
    left, right = first.softmax(0), second.softmax(1)
    order = itertools.product((0, 1), repeat=3)
    return torch.stack([middle[m] * left[i, m] * right[m, j] for i, m, j in order])


def flip_probabilities(theta: Tensor, noise: str, tau: float = 1.0) -> Tensor:
    """P(theta + tau (eps - its mean) > 0 = z) for every z of ``flips``."""
    mean = 0.5772156649015329 if noise == "gumbel" else 0.0
    on = 1 - DISTRIBUTIONS[noise](mean - theta / tau)
    z = flips(len(theta))
    return (z * on + (1 - z) * (1 - on)).prod(-1)


def gradient_by_noise(
    solver: aimle.Solver, theta: Tensor, noise: aimle.Noise, tau: float, loss: Loss
) -> tuple[Tensor, Tensor]:
    """The gradient of E loss(z) by the score function of the noise, with its standard errors.

    Unbiased for every structure: z depends on theta only through theta + tau eps. The noise is
    Normal, whose mean is zero and whose score is eps.
    """
    count, theta = 250_000, theta.double()
    key = torch.tensor([101, 7])
    eps = aimle.sample_noise(noise, (count, *theta.shape), key).squeeze(1).double()
    z = aimle.solve(solver, theta + tau * eps).flatten(1)
    losses = loss(z)
    products = (losses - losses.mean())[:, None] * eps.flatten(1) / tau
    return products.mean(0), products.std(0) / count**0.5


def tree_probabilities(theta: Tensor, vertices: int, tau: float = 1.0) -> Tensor:
    """P(maximum spanning tree of theta + tau Gumbel = z) for every z of ``trees``.

    The order of the edges is Plackett-Luce's; Kruskal's algorithm turns each into its tree.
    """
    edges = list(itertools.combinations(range(vertices), 2))
    index = {tuple(z.tolist()): i for i, z in enumerate(trees(vertices))}
    orders = torch.tensor(list(itertools.permutations(range(len(edges)))))
    ordered = (theta / tau)[orders]
    rest = ordered.flip(-1).logcumsumexp(-1).flip(-1)
    probabilities = (ordered - rest).sum(-1).exp()
    places = []
    for order in orders.tolist():
        component, z = list(range(vertices)), [0.0] * len(edges)
        for e in order:
            i, j = (component[v] for v in edges[e])
            if i != j:
                z[e] = 1.0
                component = [i if c == j else c for c in component]
        places.append(index[tuple(z)])
    return torch.zeros(len(index), dtype=torch.float64).index_add(
        0, torch.tensor(places), probabilities
    )


def exponential_family(theta: Tensor, structures: Tensor) -> Tensor:
    """p(z) proportional to exp <theta, z> over the rows of structures."""
    return torch.softmax(structures @ theta, -1)


def exact_gradient(
    theta: Tensor, structures: Tensor, probabilities: Callable, loss: Loss
) -> Tensor:
    """The gradient of sum_z p(z; theta) loss(z), in float64."""
    theta = theta.detach().double().requires_grad_()
    (probabilities(theta) @ loss(structures)).backward()
    return theta.grad


def quadratic(n: int, seed: int = 0) -> Loss:
    """z -> z' A z + b' z over the last dimension, in the type of z."""
    generator = torch.Generator().manual_seed(seed)
    a = torch.randn(n, n, generator=generator, dtype=torch.float64)
    b = torch.randn(n, generator=generator, dtype=torch.float64)
    return lambda z: ((z @ a.to(z)) * z).sum(-1) + z @ b.to(z)


def linear(n: int, seed: int = 0) -> Loss:
    """z -> b' z."""
    generator = torch.Generator().manual_seed(seed)
    b = torch.randn(n, generator=generator, dtype=torch.float64)
    return lambda z: z @ b.to(z)


def curved(n: int, seed: int = 0) -> Loss:
    """A loss that is no polynomial: a small network."""
    generator = torch.Generator().manual_seed(seed)
    a = torch.randn(n, 8, generator=generator, dtype=torch.float64)
    b = torch.randn(8, generator=generator, dtype=torch.float64)
    return lambda z: torch.tanh(z @ a.to(z) / 2) @ b.to(z)


def scores(n: int, seed: int = 0) -> Tensor:
    return torch.randn(n, generator=torch.Generator().manual_seed(seed))


def instance_of(solver: object, n: int) -> tuple[int, ...]:
    """The shape of n scores."""
    return (n // 4, 2, 2) if isinstance(solver, aimle.Chain) else (n,)


def replicate(layer: torch.nn.Module, theta: Tensor, loss: Loss, replicas: int = 400) -> Tensor:
    """Gradients of the mean loss over the layer's samples, [replicas, n], by independent noise."""
    rows = theta.detach().expand(replicas, -1).clone().requires_grad_()
    instance = instance_of(layer.solver, len(theta))
    shaped = rows.reshape(replicas, *instance)
    z = layer(shaped, key=torch.tensor([7, 11]))
    losses = loss(z.flatten(-len(instance)))
    values = layer.surrogate(shaped, z, losses) if hasattr(layer, "surrogate") else losses
    values.reshape(replicas, -1).mean(-1).sum().backward()
    return rows.grad.double()


def assert_unbiased(gradients: Tensor, exact: Tensor):
    """The mean of the rows is the exact gradient, within five standard errors in every entry."""
    error = gradients.std(0) / len(gradients) ** 0.5
    deviation = (gradients.mean(0) - exact) / error
    assert (error < 0.2 * exact.norm()).all(), f"the test says nothing: errors {error}"
    assert deviation.abs().max() < 5, f"{deviation} standard errors from {exact}"


def cosine(gradients: Tensor, exact: Tensor) -> float:
    return torch.cosine_similarity(gradients.mean(0), exact, dim=0).item()


DAG = list(itertools.combinations(range(4), 2))


def paths() -> Tensor:
    """All paths from 0 to 3 over DAG, [count, 6]."""
    ways = [(0, 3), (0, 1, 3), (0, 2, 3), (0, 1, 2, 3)]
    rows = [[float(edge in itertools.pairwise(way)) for edge in DAG] for way in ways]
    return torch.tensor(rows, dtype=torch.float64)


WEIGHTS = [3, 1, 4, 2, 2]


def sets(capacity: int) -> Tensor:
    """All sets of items whose WEIGHTS fit, [count, 5]."""
    every = flips(len(WEIGHTS))
    return every[every @ torch.tensor(WEIGHTS, dtype=torch.float64) <= capacity]


STRUCTURES = {
    "argmax": (aimle.Argmax(), subsets(5, 1), 5),
    "topk": (aimle.TopK(2), subsets(5, 2), 5),
    "tree": (aimle.SpanningTree(4), trees(4), 6),
    "chain": (aimle.Chain(), chains(2, 2), 8),
    "bernoulli": (aimle.Bernoulli(), flips(5), 5),
    "dag": (aimle.DagPath(DAG, 0, 3), paths(), 6),
    "knapsack": (aimle.Knapsack(WEIGHTS, 6), sets(6), 5),
}


def perturbed_gradient(structure: str, theta: Tensor, noise: str, tau: float, loss: Loss) -> Tensor:
    solver, vertices_of, _ = STRUCTURES[structure]

    def probabilities(at: Tensor) -> Tensor:
        if structure == "tree":
            return tree_probabilities(at, 4, tau)
        # The exponential family: Gumbel noise comes close to that of chains and paths, logistic
        # noise to that of knapsacks, and that of Bernoulli has it.
        if structure in ("chain", "dag", "bernoulli", "knapsack"):
            return exponential_family(at / tau, vertices_of)
        return subset_probabilities(at, 1 if structure == "argmax" else solver.k, noise, tau)

    return exact_gradient(theta, vertices_of, probabilities, loss)
