"""Helpers for tests of layers: problems, a native solver as a callable, and a plain layer.

The plain layer is the method as it is written down, one formula after the other, in float64 and
with PyTorch ops; it shares the solvers and the noise with the library and nothing else.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

import aimle


@dataclass(frozen=True)
class Problem:
    """A solver and the shape of one of its instances."""

    solver: aimle.Solver
    instance: tuple[int, ...]

    def theta(self, *batch: int, seed: int = 0, dtype=torch.float64, device="cpu") -> Tensor:
        """Random scores, positive for costs."""
        generator = torch.Generator().manual_seed(seed)
        values = torch.randn(*batch, *self.instance, generator=generator, dtype=torch.float64)
        if self.solver.sense == "min":
            values = values.abs() + 0.5
        return values.to(device, dtype)

    @property
    def senses(self) -> tuple[str, ...]:
        """Those in which a layer takes the solver."""
        return ("min",) if self.solver.has_costs else ("max", "min")


PROBLEMS = {
    "argmax": Problem(aimle.Argmax(), (6,)),
    "topk": Problem(aimle.TopK(3), (8,)),
    "tree": Problem(aimle.SpanningTree(5), (10,)),
    "directed tree": Problem(aimle.SpanningTree(4), (12,)),
    "knapsack": Problem(aimle.Knapsack([3, 1, 4, 1, 5, 2, 6], 9), (7,)),
    "grid": Problem(aimle.GridPath(), (4, 5)),
    "grid of 4 neighbours": Problem(aimle.GridPath(4), (3, 4)),
    "graph": Problem(aimle.GraphPath([(0, 1), (1, 2), (2, 1), (0, 2), (2, 3), (1, 3)], 0, 3), (6,)),
    "dag": Problem(aimle.DagPath([(0, 1), (1, 2), (0, 2), (2, 3), (1, 3), (0, 3)], 0, 3), (6,)),
    "chain": Problem(aimle.Chain(), (3, 3, 3)),
    "bernoulli": Problem(aimle.Bernoulli(), (7,)),
    "lattice": Problem(aimle.LatticePath(), (4, 3)),
    "lattice of moves": Problem(aimle.LatticeMoves(), (3, 3, 3)),
    "arborescence": Problem(aimle.Arborescence(), (4, 4)),
    "arborescence of one root": Problem(aimle.Arborescence(single_root=True), (4, 4)),
    "assignment": Problem(aimle.Assignment(), (4, 4)),
    "wide assignment": Problem(aimle.Assignment(), (2, 5)),
}

NOISES = {
    "none": None,
    "gumbel": aimle.Gumbel(),
    "normal": aimle.Normal(),
    "logistic": aimle.Logistic(),
    "sum of gamma": aimle.SumOfGamma(3),
}


class Disguised:
    """A native solver as a stranger: a callable that happens to say what it is."""

    def __init__(self, solver: aimle.Solver, **settings) -> None:
        self.solver, self.settings = solver, settings
        self.sense, self.instance_dims = solver.sense, solver.instance_dims
        self.fixed_size = solver.fixed_size
        self.default_noise = solver.default_noise
        self.default_temperature = solver.default_temperature
        self.has_costs = solver.has_costs
        self.rowwise = not settings  # k has an entry per row
        self.seen: list[Tensor] = []

    def __call__(self, scores: Tensor) -> Tensor:
        self.seen.append(scores)
        return self.solver(scores, **self.settings)


def published(target: object) -> bool:
    """Whether a target is the paper's rule or its authors': noise is added as their code does."""
    return isinstance(target, aimle.AdaptiveTarget) and (
        target._reference or (target.scale == "theta" and target.rule == "additive")
    )


def as_strangers_see(problem: Problem, target: object) -> bool:
    """Whether a native layer adds its noise to theta as it is, which is all a callable can do: not
    where the two directions of an edge share theirs."""
    return problem is not PROBLEMS["directed tree"] or published(target)


def randn(*shape: int, seed: int = 1, dtype=torch.float64, device="cpu") -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(device, dtype)


def exact_mean(tensor: Tensor, dim: int) -> Tensor:
    """The sum divided by the count, rounded once: PyTorch's own mean on a GPU multiplies by 1/n."""
    count = torch.full((), tensor.shape[dim], dtype=tensor.dtype, device=tensor.device)
    return tensor.sum(dim) / count


def leaf(tensor: Tensor) -> Tensor:
    return tensor.detach().clone().requires_grad_()


def run(layer: torch.nn.Module, theta: Tensor, dy: Tensor | None = None, **call):
    """z and the gradient of theta under dy (random if not given)."""
    theta = leaf(theta)
    z = layer(theta, **call)
    if dy is None:
        dy = randn(*z.shape, dtype=z.dtype, device=z.device)
    z.backward(dy)
    return z.detach(), theta.grad


def state_of(layer: torch.nn.Module) -> dict[str, Tensor]:
    """Everything that a backward pass may change, the statistics included."""
    return {name: value.clone() for name, value in layer.named_buffers() if name != "table"}


def assert_same_state(layer: torch.nn.Module, before: dict[str, Tensor]) -> None:
    for name, value in state_of(layer).items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0, equal_nan=True, msg=name)


# ---- The plain layer -----------------------------------------------------------------------------


@dataclass
class Plain:
    """What one call of a layer must give. Shapes as the layer's, lambda_ [B, S]."""

    z: Tensor
    gradient: Tensor
    lambda_: Tensor
    count: float
    zero_share: float
    changed_share: float


def share(which: Tensor) -> float:
    return which.sum().item() / which.numel()


def plain(
    layer: aimle.PerturbedMap,
    theta: Tensor,
    dy: Tensor,
    key: Tensor,
    *,
    alpha: float | None = None,
    mask: Tensor | None = None,
    k: Tensor | None = None,
) -> Plain:
    """The layer's z and gradient by the book, for finite theta and non-zero dy in training mode."""
    if is_directed(layer.solver, theta) and not published(layer.target):
        return _plain_of_pairs(layer, theta, dy, key, alpha=alpha, mask=mask)
    solver, samples = layer.solver, layer.nb_samples
    dims = solver.instance_dims
    batch, instance = theta.shape[: theta.dim() - dims], theta.shape[theta.dim() - dims :]
    sign = -1.0 if layer.sense == "min" else 1.0

    def rows(tensor: Tensor) -> Tensor:
        """[B, 1, *instance], or [B, S, *instance] if it has samples."""
        return tensor.reshape(-1, samples if tensor.numel() > theta.numel() else 1, *instance)

    free = torch.ones_like(theta, dtype=torch.bool) if mask is None else mask.expand_as(theta)
    free = rows(free)
    theta = rows(theta)
    d = rows(dy) * free
    eps = aimle.sample_noise(
        layer.noise, (len(theta), *instance), key, nb_samples=samples, instance_dims=dims
    ).to(theta.dtype)
    if layer.noise is not None and not (solver.fixed_size or published(layer.target)):
        eps = eps - layer.noise.mean

    def solve(x: Tensor) -> Tensor:
        """The maximiser of <x, z> for x [B, S, *instance]."""
        k_rows = None if k is None else k.reshape(-1, 1).expand(-1, samples)
        x = x if solver.sense == "max" else -x
        return solver(x, mask=free.expand_as(x), k=k_rows)

    z = solve(sign * theta + layer.theta_noise_temperature * eps)
    noise = layer.target_noise_temperature * eps
    over = tuple(range(2, 2 + dims))
    entries = free.sum(over).to(theta.dtype)

    def length(x: Tensor) -> Tensor:
        """The norm over free entries, without their mean where no solution can see it."""
        if getattr(layer.target, "scale", "theta") != "theta" and solver.fixed_size:
            mean = (x * free).sum(over) / entries
            x = x - mean.reshape(*mean.shape, *(1,) * dims)
        return (x * free).square().sum(over).sqrt()

    norm = length(d)
    if isinstance(layer.target, aimle.FixedTarget):
        lambda_ = torch.full_like(norm, layer.target.lambda_)
    else:
        sigma = layer.noise.stddev if layer.noise is not None else 0.0

        def size_of(theta_norm: Tensor, count: Tensor) -> Tensor:
            noise_norm = sigma * layer.target_noise_temperature * count.sqrt()
            floored = torch.maximum(theta_norm, noise_norm)
            return {"theta": theta_norm, "noise": noise_norm, "auto": floored}[layer.target.scale]

        size = size_of(length(theta), entries)
        ratio = size / norm
        if layer.target.scope == "example":
            ratio = ratio.mean(1, keepdim=True).expand_as(norm)
        if layer.target.scope == "batch":
            whole = size_of(length(theta).square().sum().sqrt(), entries.sum())
            ratio = (whole.square() * norm.shape[1] / norm.square().sum()).sqrt().expand_as(norm)
        lambda_ = (layer.alpha.item() if alpha is None else alpha) * ratio
    lambda_ = lambda_.expand(-1, samples)

    step = lambda_.reshape(*lambda_.shape, *(1,) * dims) * d
    left = solve(sign * theta + step + noise)
    if layer.difference == "forward":
        left = solve(sign * theta + noise)
        if layer.theta_noise_temperature == layer.target_noise_temperature:
            left = z
    right = solve(sign * theta - step + noise)
    change = left - right
    divisor = (2.0 if layer.difference == "central" else 1.0) * lambda_
    each = change / divisor.reshape(*divisor.shape, *(1,) * dims)
    each = torch.where(change == 0, 0.0, each)
    gradient = sign * (each.mean(1) if layer.output == "mean" else each.sum(1))
    if layer.difference == "straight_through":
        gradient = sign * (d.mean(1) if layer.output == "mean" else d.sum(1))
    nonzeros = change.ne(0).sum(over).double()
    shape = {"samples": (*batch, samples), "flat": (len(theta) * samples,), "mean": batch}
    return Plain(
        z=(exact_mean(z, 1) if layer.output == "mean" else z).reshape(
            *shape[layer.output], *instance
        ),
        gradient=gradient.reshape(*batch, *instance),
        lambda_=lambda_,
        count=nonzeros.sum().item() / nonzeros.numel(),
        zero_share=share(gradient[free.squeeze(1)].eq(0)),
        changed_share=share(nonzeros.gt(0)),
    )


def is_directed(solver: aimle.Solver, theta: Tensor) -> bool:
    """Whether theta has an entry for each direction of an edge."""
    return isinstance(solver, aimle.SpanningTree) and theta.shape[-1] == solver.n * (solver.n - 1)


def _plain_of_pairs(layer, theta: Tensor, dy: Tensor, key: Tensor, *, alpha, mask) -> Plain:
    """The undirected layer on the sums of both directions."""
    n = layer.solver.n
    # Entry (receiver, sender) of the directed layout, receivers first, as pairs i < j.
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    edges = [pair for pair in pairs if pair[0] < pair[1]]
    edge_of = torch.tensor([edges.index((min(p), max(p))) for p in pairs], device=theta.device)

    def folded(x: Tensor) -> Tensor:
        return x.new_zeros(*x.shape[:-1], len(edges)).index_add(-1, edge_of, x)

    both = None if mask is None else folded(mask.expand_as(theta).to(torch.uint8)).eq(2)
    found = plain(layer, folded(theta), folded(dy), key, alpha=alpha, mask=both)
    found.z, found.gradient = found.z[..., edge_of], found.gradient[..., edge_of]
    return found


OUTPUTS = ("samples", "flat", "mean")


def adaptive(alpha: float = 0.5, scale: str = "auto", **settings) -> aimle.AdaptiveTarget:
    """A target that moves, but measures no reach: the next step is taken with alpha."""
    given = {"target_norm": 1.0, "scale": scale, **settings}
    return aimle.AdaptiveTarget(initial_alpha=alpha, **given)


def gradient_shape(layer: aimle.PerturbedMap, theta: Tensor) -> tuple[int, ...]:
    dims = layer.solver.instance_dims
    batch, instance = theta.shape[: theta.dim() - dims], theta.shape[theta.dim() - dims :]
    samples = layer.nb_samples
    if layer.output == "flat":
        return (math.prod(batch) * samples, *instance)
    return (*batch, *((samples,) if layer.output == "samples" else ()), *instance)
