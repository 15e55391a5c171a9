"""One small call of every native layer, forward and backward, and of the exact distributions.

``python tests/cuda/every_layer.py [DEVICE]``; ``make sanitize-gpu`` runs it under memcheck and
racecheck. It checks nothing else: the tests do.
"""

from __future__ import annotations

import sys

import torch

import aimle

# A solver for each kind of kernel: by a thread, a warp, a block and several blocks of a row.
CASES = [
    (aimle.TopK(k=1), (64, 20)),
    (aimle.TopK(k=10), (64, 20)),
    (aimle.TopK(k=10), (8, 1000)),
    (aimle.TopK(k=100), (2, 5000)),
    (aimle.SpanningTree(10), (32, 45)),
    (aimle.SpanningTree(40), (4, 780)),
    (aimle.GridPath(), (4, 12, 12)),
    (aimle.GridPath(), (2, 30, 30)),
    (aimle.LatticePath(), (8, 12, 9)),
    (aimle.LatticePath("diagonal"), (2, 60, 50)),
    (aimle.LatticeMoves(), (2, 150, 140, 3)),
    (aimle.Chain(), (64, 3, 2, 2)),
    (aimle.Chain(), (8, 9, 20, 20)),
    (aimle.Chain(), (2, 3, 150, 150)),
    (aimle.Chain(), (2, 1500, 30, 30)),
    (aimle.Bernoulli(), (64, 20)),
    (aimle.Bernoulli(), (8, 1000)),
    (aimle.Bernoulli(), (2, 10000)),
]


def layers(solver: aimle.Solver) -> list[torch.nn.Module]:
    target = aimle.AdaptiveTarget(initial_alpha=1.0)  # so that solutions differ from the start
    result: list[torch.nn.Module] = [
        aimle.AIMLE(solver, noise=noise, nb_samples=nb_samples, target=target)
        for noise in (aimle.Gumbel(), aimle.SumOfGamma(k=10))
        for nb_samples in (1, 3)
    ]
    result.append(aimle.AIMLE(solver, symmetric_perturbation=False, target=target))
    result.append(aimle.STE(solver))
    if solver.has_thresholds:
        result.append(aimle.Thresholds(solver))
    return result


def main(device: str) -> None:
    torch.manual_seed(0)
    for solver, shape in CASES:
        for layer in layers(solver):
            theta = torch.rand(shape).add_(0.1).to(device).requires_grad_()
            z = layer.to(device)(theta)
            z.backward(torch.randn_like(z))
            print(layer, shape, theta.grad.abs().sum().item(), flush=True)
    for solver, instance in (
        (aimle.Argmax(), (20,)),
        (aimle.TopK(k=5), (20,)),
        (aimle.SpanningTree(6), (15,)),
        (aimle.SpanningTree(30), (435,)),
        (aimle.LatticePath(), (9, 7)),
        (aimle.LatticeMoves(), (50, 60, 3)),
        (aimle.Chain(), (6, 4, 4)),
        (aimle.Chain(), (40, 30, 30)),
        (aimle.Bernoulli(), (20,)),
    ):
        scores = torch.rand(8, *instance, device=device)
        key = aimle.draw_key(scores)
        for spread in (1.0, 9.0):  # trees are sampled by walks, and edge by edge
            drawn = aimle.exact.sample(solver, spread * scores, key, 3)
            marginals = aimle.exact.marginals(solver, spread * scores)
            print(solver, drawn.sum().item(), marginals.sum().item(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "cuda")
