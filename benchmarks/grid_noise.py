"""Compares noise distributions and temperatures for paths over costs.

    python benchmarks/grid_noise.py

cosine    of AIMLE's gradient, a central difference at S = 1000, to the true one of its own model,
          E hamming(MAP(costs - tau eps), path), on 3 x 3 grids with costs in [1, 3]; the truth by
          the score function from `--truth` samples. Below tau = 0.3 paths hardly ever change there,
          and the true gradient is not known.
clipped   share of perturbed costs below zero, 12 x 12 grids with costs in [.5, 1.5]
centred   the same after the mean of the noise is subtracted
cells     of a perturbed path, and in how many it differs from the noise-free one, on these grids
          (uncentred noise)
regret    excess cost of a network's paths on 200 test maps of 10 x 10, after 400 steps of 32
          maps, mean over three seeds
"""

import argparse

import torch
from torch import Tensor, nn

import aimle

GRID = aimle.GridPath()


def hamming(z: Tensor, path: Tensor) -> Tensor:
    return (z * (1 - path) + (1 - z) * path).sum((-1, -2))


def noise_of(noise: aimle.Noise, shape: torch.Size, samples: int) -> Tensor:
    key = aimle.draw_key(torch.empty(0))
    return aimle.sample_noise(noise, shape, key, nb_samples=samples, instance_dims=2)


def true_gradient(noise: aimle.Noise, tau: float, costs: Tensor, path: Tensor, samples: int):
    """By the score function, with the mean of the other samples as a baseline."""
    total = torch.zeros_like(costs, dtype=torch.float64)
    blocks = max(1, samples // 10_000)
    for _ in range(blocks):
        eps = noise_of(noise, costs.shape, 10_000)
        losses = hamming(GRID(costs.unsqueeze(1) - tau * eps), path.unsqueeze(1))
        centred = (losses - losses.mean(1, keepdim=True))[..., None, None]
        score = eps if isinstance(noise, aimle.Normal) else 1 - torch.exp(-eps)
        total -= (centred * score).mean(1).double() / tau
    return total / blocks


def cosine(noise: aimle.Noise, tau: float, truth_samples: int) -> float:
    generator = torch.Generator().manual_seed(0)
    costs = 1 + 2 * torch.rand(16, 3, 3, generator=generator)
    path = GRID(1 + 2 * torch.rand(16, 3, 3, generator=generator))
    truth = true_gradient(noise, tau, costs, path, truth_samples)
    theta = costs.clone().requires_grad_()
    layer = aimle.IMLE(
        GRID,
        tau,
        noise=noise,
        theta_noise_temperature=tau,
        nb_samples=1000,
        symmetric_perturbation=True,
    )
    hamming(layer(theta), path.unsqueeze(1)).sum().backward()
    both = (theta.grad.flatten(1).double(), truth.flatten(1))
    return float(torch.cosine_similarity(*both, dim=1).mean())


def maps(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Features [count, 10, 10, 6] and their costs."""
    fixed = torch.Generator().manual_seed(99)
    inner = torch.randn(6, 16, generator=fixed)
    outer = torch.randn(16, generator=fixed) / 4
    x = torch.randn(count, 10, 10, 6, generator=torch.Generator().manual_seed(seed))
    return x, nn.functional.softplus(1.0 + torch.tanh(x @ inner) @ outer)


def regret(noise: aimle.Noise, tau: float, seed: int) -> float:
    torch.manual_seed(seed)
    x, costs = maps(200, 1)
    path = GRID(costs)
    net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1), nn.Softplus())
    layer = aimle.AIMLE(GRID, noise=noise, temperature=tau)
    optimiser = torch.optim.Adam(net.parameters(), 5e-3)
    for _ in range(400):
        rows = torch.randint(0, len(x), (32,))
        z = layer(net(x[rows]).squeeze(-1)).squeeze(1)
        optimiser.zero_grad()
        hamming(z, path[rows]).mean().backward()
        optimiser.step()
    x, costs = maps(200, 2)
    with torch.no_grad():
        found = (costs * GRID(net(x).squeeze(-1))).sum((-1, -2))
    return float((found / (costs * GRID(costs)).sum((-1, -2)) - 1).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--truth", type=int, default=1_000_000)
    truth_samples = parser.parse_args().truth
    torch.manual_seed(0)
    costs = 0.5 + torch.rand(64, 12, 12)
    plain = GRID(costs).unsqueeze(1)
    print("noise     tau  cosine  clipped  centred  cells  differ  regret")
    for noise, mean in ((aimle.Normal(), 0.0), (aimle.Gumbel(), 0.5772)):
        for tau in (0.05, 0.1, 0.2, 0.3, 0.5, 1.0):
            x = costs.unsqueeze(1) - tau * noise_of(noise, costs.shape, 20)
            z = GRID(x)
            learned = sum(regret(noise, tau, seed) for seed in range(3)) / 3
            shares = [100 * (x < -tau * shift).double().mean() for shift in (0.0, mean)]
            print(
                f"{noise.name:8} {tau:4.2f} {cosine(noise, tau, truth_samples):7.2f} "
                f"{shares[0]:7.2f}% {shares[1]:7.2f}% {z.sum((-1, -2)).mean():6.1f} "
                f"{hamming(z, plain).mean():7.1f} {100 * learned:6.2f}%",
                flush=True,
            )


if __name__ == "__main__":
    main()
