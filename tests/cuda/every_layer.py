"""One call, forward and backward, of every native layer: small, for compute-sanitizer.

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
]


def main(device: str) -> None:
    torch.manual_seed(0)
    target = aimle.AdaptiveTarget(initial_alpha=1.0)  # so that solutions differ from the start
    for solver, shape in CASES:
        for noise in (aimle.Gumbel(), aimle.SumOfGamma(k=10)):
            for nb_samples in (1, 3):
                theta = torch.rand(shape).add_(0.1).to(device).requires_grad_()
                layer = aimle.AIMLE(solver, noise=noise, nb_samples=nb_samples, target=target)
                layer.to(device)
                z = layer(theta)
                z.backward(torch.randn_like(z))
                print(solver, shape, noise, nb_samples, theta.grad.abs().sum().item(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "cuda")
