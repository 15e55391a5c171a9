"""Forward and backward of one adaptive central layer, compared with plain PyTorch code.

`make bench` runs it; `--reference DIR` adds the authors' code from a checkout of
EdinburghNLP/torch-adaptive-imle. Gradients are compared on the same noise before timing.
`published` is a time reported for the authors' layer on a 2-core machine, `aim` the target time
with two threads. `--thresholds` compares `Thresholds` with `AIMLE` instead.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import plain_layer
import torch
from torch import Tensor

import aimle


@dataclass(frozen=True)
class Case:
    name: str
    shape: tuple[int, ...]  # of theta
    samples: int
    solver: aimle.Solver
    plain_solver: Callable[[Tensor], Tensor]
    noise: aimle.Noise
    plain_noise: Callable[[torch.Size], Tensor]
    published_ms: float
    aim_ms: float

    def theta(self) -> Tensor:
        generator = torch.Generator().manual_seed(0)
        theta = torch.randn(self.shape, generator=generator)
        return (theta.abs() + 1.0 if self.solver.sense == "min" else theta).requires_grad_()

    def gradient(self) -> Tensor:
        shape = (self.shape[0], self.samples, *self.shape[1:])
        return torch.randn(shape, generator=torch.Generator().manual_seed(1))


def cases() -> list[Case]:
    sog, gumbel = aimle.SumOfGamma(10), aimle.Gumbel()
    plain_sog, plain_gumbel = plain_layer.sum_of_gamma(10), plain_layer.gumbel
    ten, one = aimle.TopK(10), aimle.TopK(1)
    plain_ten, plain_one = plain_layer.topk(10), plain_layer.topk(1)
    tree, plain_tree = aimle.SpanningTree(10), plain_layer.directed_tree(10)
    path, plain_path = aimle.GridPath(), plain_layer.grid_path
    return [
        Case("10 of 20, SoG, S = 10", (2000, 20), 10, ten, plain_ten, sog, plain_sog, 287, 2.9),
        Case("10 of 20, SoG, S = 1", (2000, 20), 1, ten, plain_ten, sog, plain_sog, 28.7, 0.36),
        Case("1 of 20, Gumbel", (2000, 20), 1, one, plain_one, gumbel, plain_gumbel, 1.87, 0.23),
        Case("10 of 350, Gumbel", (40, 350), 1, ten, plain_ten, gumbel, plain_gumbel, 1.15, 0.19),
        Case("10 of 350, SoG", (40, 350), 1, ten, plain_ten, sog, plain_sog, 10.6, 0.21),
        Case("128 trees of 10, SoG", (128, 90), 1, tree, plain_tree, sog, plain_sog, 73, 0.18),
        Case(
            "70 grids of 12 x 12",
            (70, 12, 12),
            1,
            path,
            plain_path,
            gumbel,
            plain_gumbel,
            182,
            0.36,
        ),
        Case(
            "70 grids of 30 x 30",
            (70, 30, 30),
            1,
            path,
            plain_path,
            gumbel,
            plain_gumbel,
            1289,
            1.3,
        ),
    ]


def check(case: Case) -> None:
    """The layer and the plain one agree on the gradient, given the same noise and alpha."""
    key = torch.tensor([3, 4])
    alpha = 0.3
    layer = aimle.AIMLE(
        case.solver,
        noise=case.noise,
        nb_samples=case.samples,
        symmetric_perturbation=True,
        target=aimle.AdaptiveTarget.paper(alpha),
    )
    dims = case.solver.instance_dims
    eps = aimle.sample_noise(
        case.noise, case.shape, key, nb_samples=case.samples, instance_dims=dims
    )
    minimise = case.solver.sense == "min"
    plain = plain_layer.PlainAIMLE(
        case.plain_solver, lambda _: eps, case.samples, minimise, alpha=alpha
    )
    theta, dy = case.theta(), case.gradient()
    (ours,) = torch.autograd.grad(layer(theta, key=key), theta, dy)
    (theirs,) = torch.autograd.grad(plain(theta), theta, dy)
    same = torch.isclose(ours, theirs, rtol=1e-3, atol=1e-6).double().mean().item()
    # The plain version rounds lambda differently, which occasionally changes a solution.
    assert same > 0.995, f"{case.name}: only {same:.4f} of the gradient agrees"


def _stepper(layer: Callable[[Tensor], Tensor], case: Case, shape=None) -> Callable[[], object]:
    theta, dy = case.theta(), case.gradient()
    if shape is not None:
        dy = dy.reshape(shape)

    def step() -> None:
        theta.grad = None
        layer(theta).backward(dy)

    return step


def _authors_layer(case: Case, folder: Path) -> Callable[[Tensor], Tensor]:
    sys.path.insert(0, str(folder))
    from imle.aimle import aimle as decorate
    from imle.noise import GumbelNoiseDistribution, SumOfGammaNoiseDistribution
    from imle.target import AdaptiveTargetDistribution

    gumbel = isinstance(case.noise, aimle.Gumbel)
    noise = GumbelNoiseDistribution() if gumbel else SumOfGammaNoiseDistribution(case.noise.k, 10)
    return decorate(
        case.plain_solver,
        target_distribution=AdaptiveTargetDistribution(initial_beta=0.0),
        noise_distribution=noise,
        nb_samples=case.samples,
        symmetric_perturbation=True,
        _is_minimization=case.solver.sense == "min",
    )


def measure(steps: list[Callable[[], object]], rounds: int) -> list[float]:
    """Median seconds of every step, measured alternately."""
    times: list[list[float]] = [[] for _ in steps]
    repeats = []
    for step in steps:
        step()
        start = time.perf_counter()
        step()
        repeats.append(max(1, int(0.05 / (time.perf_counter() - start))))
    for _ in range(rounds):
        for step, count, out in zip(steps, repeats, times, strict=True):
            start = time.perf_counter()
            for _ in range(count):
                step()
            out.append((time.perf_counter() - start) / count)
    return [statistics.median(t) for t in times]


def tiny_calls(rounds: int) -> list[float]:
    """Seconds for theta [1, 10] with argmax (the overhead of a call), and for theta * 2."""
    case = Case("", (1, 10), 1, aimle.Argmax(), None, aimle.Gumbel(), None, 0, 0)
    layer = _stepper(aimle.AIMLE(case.solver), case)
    return measure([layer, _stepper(lambda theta: theta * 2.0, case, case.shape)], rounds)


def print_scaling(rounds: int) -> None:
    """Time by number of rows B S: linear, without jumps at the boundaries of blocks or threads."""
    print(f"{'B':>8}{'S':>6}{'rows':>10}{'aimle':>12}{'per row':>12}")
    shapes = [(b, 1) for b in (1, 63, 64, 65, 500, 999, 1000, 1001, 2000, 4000, 8000, 16000)]
    shapes += [(200, s) for s in (1, 9, 10, 11, 63, 64, 65, 100)]
    for b, s in shapes:
        case = Case("", (b, 20), s, aimle.TopK(10), None, aimle.Gumbel(), None, 0, 0)
        layer = aimle.AIMLE(case.solver, nb_samples=s)
        (seconds,) = measure([_stepper(layer, case)], rounds)
        print(f"{b:8}{s:6}{b * s:10}{seconds * 1e3:9.3f} ms{seconds / (b * s) * 1e9:9.0f} ns")


def _plain_thresholds(theta: Tensor, eps: Tensor, z: Tensor, dy: Tensor) -> Tensor:
    """The gradient of argmax and top-k under Gumbel noise, by the formulas of the guide."""
    theta, d = theta.detach().double().unsqueeze(1), dy.double()
    x = theta + eps.double()
    is_in = z > 0.5
    best_out = x.masked_fill(is_in, -torch.inf).argmax(-1, keepdim=True)
    worst_in = x.masked_fill(~is_in, torch.inf).argmin(-1, keepdim=True)
    partner = torch.where(is_in, best_out, worst_in)
    y = torch.exp(theta - x.gather(-1, partner))
    weight = torch.where(is_in, y / torch.expm1(y), y).clamp(max=20.0)
    g = (0.5 * weight * (d - d.gather(-1, partner))).sum(1)
    return g - g.mean(-1, keepdim=True)


def _plain_bernoulli(theta: Tensor, z: Tensor, dy: Tensor) -> Tensor:
    """The gradient of Bernoulli under logistic noise: every threshold is zero."""
    on = torch.sigmoid(theta.detach().double()).unsqueeze(1)
    return (0.5 * torch.where(z > 0.5, 1 - on, on) * dy.double()).sum(1)


def _normal_hazard(u: Tensor) -> Tensor:
    """phi(u) / Phi(-u)."""
    return torch.exp(-0.5 * u * u - torch.special.log_ndtr(-u)) / math.sqrt(2 * math.pi)


def _check_path(case: Case, key: Tensor, z: Tensor, dy: Tensor, ours: Tensor) -> None:
    """The first row, one sample: best paths with and without an entry by solving again."""
    solver, theta = case.solver, case.theta()[0].detach().double().flatten()
    n, tau = len(theta), 1.0 if solver.fixed_size else 0.3  # the default of layers
    noise = aimle.Gumbel() if solver.fixed_size else aimle.Normal()
    eps = aimle.sample_noise(noise, (case.shape[0], n), key, nb_samples=1)
    x, d = theta + tau * eps.double().reshape(-1, n)[0], dy[0, 0].double().flatten()
    edges = torch.arange(0, n, n // 500)
    above, below = x.repeat(len(edges), 1), x.repeat(len(edges), 1)
    rows = torch.arange(len(edges))
    above[rows, edges], below[rows, edges] = 1e4, -1e4
    inside, out = (
        aimle.solve(solver, s.reshape(-1, *case.shape[1:])).flatten(1) for s in (above, below)
    )
    threshold = (out @ x) - ((inside @ x) - x[edges])
    is_in = z[0, 0].flatten()[edges] > 0.5
    u = (threshold - theta[edges]) / tau
    if solver.fixed_size:
        y = torch.exp(-u)
        weight = torch.where(is_in, y / torch.expm1(y), y)
    else:
        weight = _normal_hazard(torch.where(is_in, u, -u))
    g = 0.5 * weight.clamp(max=20.0) * ((inside - out) @ d) / tau
    can_change = inside[rows, edges] != out[rows, edges]  # not the ends of a lattice
    g, found = g[can_change], ours[0].flatten()[edges].double()[can_change]
    if solver.fixed_size:
        g, found = g - g.mean(), found - found.mean()
    torch.testing.assert_close(found, g, rtol=1e-3, atol=1e-3)


def check_thresholds(case: Case) -> None:
    """Both layers choose the same, and the gradient is the plain one (for trees: sums to zero)."""
    key, theta, dy = torch.tensor([3, 4]), case.theta(), case.gradient()
    z = aimle.Thresholds(case.solver, nb_samples=case.samples)(theta, key=key)
    assert torch.equal(z, aimle.AIMLE(case.solver, nb_samples=case.samples)(theta, key=key))
    (ours,) = torch.autograd.grad(z, theta, dy)
    z = z.detach()
    if case.solver.fixed_size:
        assert ours.flatten(1).sum(-1).abs().max() < 1e-3 * theta[0].numel() ** 0.5
    if isinstance(case.solver, aimle.Chain | aimle.LatticePath | aimle.LatticeMoves):
        _check_path(case, key, z, dy, ours)
    elif not isinstance(case.solver, aimle.SpanningTree):
        if isinstance(case.solver, aimle.Bernoulli):
            plain = _plain_bernoulli(theta, z, dy)
        else:
            eps = aimle.sample_noise(case.noise, case.shape, key, nb_samples=case.samples)
            plain = _plain_thresholds(theta, eps, z, dy)
        torch.testing.assert_close(ours.double(), plain, rtol=1e-4, atol=1e-4)


def print_thresholds(threads_list: list[int], rounds: int) -> None:
    """Forward and backward of `Thresholds` compared with those of `AIMLE`, on the same theta."""
    batches = [(32, 1), (128, 1), (512, 1), (32, 10), (128, 10), (512, 10)]
    structures = [
        ("10 of 100", aimle.TopK(10), (100,), batches),
        ("1 of 20", aimle.Argmax(), (20,), batches),
        ("trees of 30", aimle.SpanningTree(30), (435,), batches),
        ("100 on or off", aimle.Bernoulli(), (100,), batches),
        ("chains 50 x 20", aimle.Chain(), (49, 20, 20), [(128, 1)]),
        ("lattices 50x50", aimle.LatticePath(), (50, 50), [(32, 1), (128, 1)]),
        ("moves 30 x 30", aimle.LatticeMoves(), (30, 30, 3), [(32, 1), (128, 1)]),
    ]
    print(
        f"{'structure':16}{'B':>6}{'S':>4}{'threads':>8}{'AIMLE':>13}{'thresholds':>13}{'ratio':>7}"
    )
    for name, solver, instance, of_structure in structures:
        for batch, samples in of_structure:
            shape = (batch, *instance)
            case = Case("", shape, samples, solver, None, aimle.Gumbel(), None, 0, 0)
            check_thresholds(case)
            for threads in threads_list:
                torch.set_num_threads(threads)
                layers = (aimle.AIMLE, aimle.Thresholds)
                steps = [_stepper(layer(solver, nb_samples=samples), case) for layer in layers]
                step, ours = (1e3 * t for t in measure(steps, rounds))
                print(
                    f"{name:16}{batch:6}{samples:4}{threads:8}{step:10.3f} ms{ours:10.3f} ms"
                    f"{ours / step:7.2f}",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--reference", type=Path, help="checkout of the authors' code")
    parser.add_argument("--only", type=str, default="", help="cases whose name contains this")
    parser.add_argument("--scaling", action="store_true", help="time over the number of rows")
    parser.add_argument("--thresholds", action="store_true", help="compare Thresholds with AIMLE")
    options = parser.parse_args()
    torch.set_num_threads(max(options.threads))
    if options.scaling:
        print_scaling(options.rounds)
    elif options.thresholds:
        print_thresholds(options.threads, options.rounds)
    else:
        print_cases(options)


def print_cases(options: argparse.Namespace) -> None:
    """Every case, with every requested number of threads."""
    print("forward + backward from Python; medians of alternating rounds")
    print(
        f"{'layer':24}{'threads':>8}{'aimle':>12}{'aim':>9}{'plain':>12}{'ratio':>9}"
        f"{'published':>12}{'ratio':>9}" + ("     authors    ratio" if options.reference else "")
    )
    for case in cases():
        if options.only not in case.name:
            continue
        check(case)
        for threads in options.threads:
            torch.set_num_threads(threads)
            ours = aimle.AIMLE(
                case.solver,
                noise=case.noise,
                nb_samples=case.samples,
                symmetric_perturbation=True,
            )
            plain = plain_layer.PlainAIMLE(
                case.plain_solver, case.plain_noise, case.samples, case.solver.sense == "min"
            )
            steps = [_stepper(ours, case), _stepper(plain, case)]
            if options.reference:
                flat = (-1, *case.shape[1:])
                steps.append(_stepper(_authors_layer(case, options.reference), case, flat))
            mine, theirs, *authors = (1e3 * t for t in measure(steps, options.rounds))
            line = (
                f"{case.name:24}{threads:8}{mine:9.3f} ms{case.aim_ms:6.2f} ms{theirs:9.2f} ms"
                f"{theirs / mine:8.0f}x{case.published_ms:9.2f} ms{case.published_ms / mine:8.0f}x"
            )
            for time_ in authors:
                line += f"{time_:9.2f} ms{time_ / mine:8.0f}x"
            print(line, flush=True)
    torch.set_num_threads(max(options.threads))
    tiny, twice = (1e6 * t for t in tiny_calls(options.rounds))
    print(
        f"\none call of theta [1, 10], argmax: {tiny:.0f} µs; theta * 2: {twice:.0f} µs; "
        f"ratio {tiny / twice:.2f} (aim 1.8)"
    )


if __name__ == "__main__":
    main()
