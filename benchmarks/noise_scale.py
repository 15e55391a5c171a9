"""Trains through knapsacks and lattices whose scores have different scales.

    python benchmarks/noise_scale.py

A linear model learns the scores of 200 examples through AIMLE, S = 3, 200 steps of 20 examples,
from the value that its solutions lose. Printed is that loss on 500 other examples, in per cent of
the best value, mean over `--seeds`. The model's output is multiplied by the scale of the scores, so
that only the noise does not scale with them.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn

import aimle

FEATURES, TRAINING, TEST, BATCH, STEPS, SAMPLES = 5, 200, 500, 20, 200, 3
SCALES, FACTORS = (0.1, 1.0, 10.0), (0.03, 0.1, 0.3, 1.0, 3.0)


def scores_of(features: Tensor, entries: int, generator: torch.Generator) -> Tensor:
    """Linear in the features, and noise: of order one."""
    weights = torch.randn(FEATURES, entries, generator=generator) / FEATURES**0.5
    noise = torch.randn(len(features), entries, generator=generator)
    return features @ weights + 0.3 * noise


def knapsack(features: Tensor, generator: torch.Generator) -> tuple[aimle.Solver, Tensor]:
    values = scores_of(features, 16, generator).exp()
    weights = torch.randint(1, 10, (16,), generator=generator).tolist()
    return aimle.Knapsack(weights, sum(weights) // 3), values / values.mean()


def lattice(features: Tensor, generator: torch.Generator) -> tuple[aimle.Solver, Tensor]:
    return aimle.LatticePath(), scores_of(features, 80, generator).view(-1, 10, 8)


PROBLEMS = {"knapsacks of 16 items": knapsack, "lattices of 10 x 8": lattice}


def lost(solutions: Tensor, best: Tensor, scores: Tensor) -> Tensor:
    return ((best - solutions) * scores).flatten(1).sum(1)


def regret(name: str, scale: float, temperature: float | None, seed: int) -> float:
    """After training; a temperature of None is the layer's default."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(TRAINING + TEST, FEATURES, generator=generator)
    solver, scores = PROBLEMS[name](features, generator)
    scores, best = scale * scores, solver(scores)
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Linear(FEATURES, scores[0].numel()), nn.Unflatten(1, tuple(scores.shape[1:]))
    )
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    layer = aimle.AIMLE(solver, nb_samples=SAMPLES, output="mean", temperature=temperature)
    for _ in range(STEPS):
        rows = torch.randint(0, TRAINING, (BATCH,))
        optimiser.zero_grad()
        z = layer(scale * model(features[rows]))
        lost(z, best[rows], scores[rows]).mean().backward()
        optimiser.step()
    with torch.no_grad():
        z = solver(model(features[TRAINING:]))
    rows = slice(TRAINING, None)
    total = (best[rows] * scores[rows]).sum()
    return 100 * float(lost(z, best[rows], scores[rows]).sum() / total)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args()
    torch.set_num_threads(1)
    columns = " | ".join(f"{factor:g} × scale" for factor in FACTORS)
    print(f"| problem | scale | default, 0.3 | {columns} |")
    print("| --- " * (3 + len(FACTORS)) + "|")
    for name in PROBLEMS:
        for scale in SCALES:
            cells = []
            for temperature in (None, *(factor * scale for factor in FACTORS)):
                losses = [regret(name, scale, temperature, s) for s in range(options.seeds)]
                cells.append(f"{sum(losses) / len(losses):.1f} %")
            print(f"| {name} | {scale:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
