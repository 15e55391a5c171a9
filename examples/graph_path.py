"""Predict, then optimise: learns costs of roads from features, with the cost of the path as loss.

    python examples/graph_path.py [--picture graph_path.png]

PyEPO's shortest path: roads east and south between 5 x 5 crossings, whose costs are not a linear
function of the features. The loss of a linear model is the cost of its path, through AIMLE.
"""

import sys

import torch

import aimle

SIDE, FEATURES, DAYS = 5, 5, 400
torch.manual_seed(0)
cells = torch.arange(SIDE * SIDE).view(SIDE, SIDE)
steps = (cells[:, :-1], cells[:, 1:]), (cells[:-1], cells[1:])  # east and south
roads = torch.cat([torch.stack(ends, -1).view(-1, 2) for ends in steps])
solver = aimle.DagPath(roads, source=0, target=SIDE * SIDE - 1)
mixing = torch.bernoulli(torch.full((FEATURES, 40), 0.5))
features = torch.randn(2 * DAYS, FEATURES)
costs = ((features @ mixing / FEATURES**0.5 + 3).clamp(min=0) / 3.5) ** 6 + 1


def regret(model: torch.nn.Module) -> float:
    """The relative excess cost of the model's paths on new days."""
    true, z = costs[DAYS:], solver(-model(features[DAYS:]))
    return float((true * z).sum() / (true * solver(-true)).sum() - 1)


def learn(loss_of_day) -> list[float]:
    torch.manual_seed(2)
    model = torch.nn.Linear(FEATURES, 40)
    optimiser, curve = torch.optim.Adam(model.parameters(), lr=0.05), []
    for _ in range(60):
        for batch in torch.randperm(DAYS).split(50):
            optimiser.zero_grad()
            loss_of_day(model(features[batch]), costs[batch]).backward()
            optimiser.step()
        curve.append(regret(model))
    return curve  # the regret after every epoch


way = aimle.AIMLE(solver, sense="min", nb_samples=4)
squares = learn(torch.nn.functional.mse_loss)
decision = learn(lambda theta, true: (true.unsqueeze(1) * way(theta)).sum(-1).mean())
print(f"regret on new days: squared error {squares[-1]:.1%}, through AIMLE {decision[-1]:.1%}")
assert decision[-1] < squares[-1]
if "--picture" in sys.argv:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5, 3), layout="constrained")
    axes.plot([100 * r for r in squares], label="squared error of the costs")
    axes.plot([100 * r for r in decision], label="cost of the way taken (AIMLE)")
    axes.set(xlabel="epoch", ylabel="regret on new days, %", ylim=(0, None))
    axes.legend()
    figure.savefig(sys.argv[-1], dpi=80)
