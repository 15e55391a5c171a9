"""PyEPO's shortest-path problem, by its published recipe (Tang & Khalil, "PyEPO", 2022; Elmachtoub,
Grigas, "Smart Predict, then Optimize", 2022): costs of the edges of a grid are a polynomial of
features, and a linear model predicts them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

SIDE = 5
EDGES = 2 * SIDE * (SIDE - 1)
FEATURES = 5


def _edge(row: int, column: int, down: bool) -> int:
    """Every row's edges to the right, then those down from it."""
    start = row * (2 * SIDE - 1)
    return start + (SIDE - 1 + column if down else column)


def cheapest_path(costs: Tensor) -> Tensor:
    """Costs [N, edges] -> the cheapest path from the first to the last vertex, right and down."""
    count = costs.shape[0]
    best: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}
    for row in range(SIDE):
        for column in range(SIDE):
            ways = []
            for down, before in ((False, (row, column - 1)), (True, (row - 1, column))):
                if before in best:
                    edge = _edge(*before, down)
                    length, path = best[before]
                    path = path.clone()
                    path[:, edge] = 1
                    ways.append((length + costs[:, edge], path))
            if not ways:
                best[row, column] = costs.new_zeros(count), torch.zeros_like(costs)
            elif len(ways) == 1:
                best[row, column] = ways[0]
            else:
                (a, through_a), (b, through_b) = ways
                first = (a <= b).unsqueeze(1)
                best[row, column] = torch.minimum(a, b), torch.where(first, through_a, through_b)
    return best[SIDE - 1, SIDE - 1][1]


def make_data(count: int, seed: int, degree: int = 4, noise: float = 0.5) -> tuple[Tensor, Tensor]:
    """Features [count, p] and costs [count, edges]."""
    generator = torch.Generator().manual_seed(seed)
    mixing = torch.rand(EDGES, FEATURES, generator=torch.Generator().manual_seed(135)) < 0.5
    features = torch.randn(count, FEATURES, generator=generator)
    costs = (features @ mixing.float().T / FEATURES**0.5 + 3) ** degree + 1
    width = 1 - noise + 2 * noise * torch.rand(count, EDGES, generator=generator)
    return features, costs / 3.5**degree * width


def regret(model: torch.nn.Module, features: Tensor, costs: Tensor) -> float:
    """Extra cost of the predicted paths, as a share of the cost of the best ones."""
    with torch.no_grad():
        chosen = (costs * cheapest_path(model(features))).sum()
        least = (costs * cheapest_path(costs)).sum()
    return float(chosen / least - 1)


def train(
    step_loss: Callable[[Tensor, Tensor, Tensor], Tensor], seed: int, steps: int, lr: float
) -> float:
    """The regret on 1000 new examples after that many steps of Adam on batches of 20 of 100;
    step_loss is given predicted costs, the best paths and the true costs."""
    torch.manual_seed(seed)
    features, costs = make_data(100, seed)
    paths = cheapest_path(costs)
    model = torch.nn.Linear(FEATURES, EDGES)
    optimiser = torch.optim.Adam(model.parameters(), lr=lr)
    for step in range(steps):
        rows = torch.arange(20) + 20 * (step % 5)
        loss = step_loss(model(features[rows]), paths[rows], costs[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return regret(model, *make_data(1000, 1000 + seed))
