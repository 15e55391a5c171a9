"""Predict, then optimise: learns values of items from features, with the packed value as loss.

    python examples/knapsack.py [--picture knapsack.png]

The values of a day are an unknown, nonlinear function of its features, so a linear model cannot fit
all of them: the loss is the true value of the items that it packs, through AIMLE.
"""

import argparse

import torch

import aimle

ITEMS, FEATURES, DAYS = 16, 5, 400
torch.manual_seed(1)
solver = aimle.Knapsack(torch.randint(3, 9, (ITEMS,)), capacity=20)
mixing = torch.bernoulli(torch.full((FEATURES, ITEMS), 0.5))
features = torch.randn(2 * DAYS, FEATURES)
values = ((features @ mixing / FEATURES**0.5 + 3).clamp(min=0) ** 6 / 3.5**5 + 1).ceil()


@torch.no_grad()
def regret(model: torch.nn.Module) -> float:
    """The loss on new days compared with packing by the true values, in percent."""
    true, packed = values[DAYS:], solver(model(features[DAYS:]))
    return float(100 - 100 * (true * packed).sum() / (true * solver(true)).sum())


def learn(loss) -> list[float]:
    torch.manual_seed(2)
    model, curve = torch.nn.Linear(FEATURES, ITEMS), []
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(60):
        for batch in torch.randperm(DAYS).split(50):
            optimiser.zero_grad()
            loss(model(features[batch]), values[batch]).backward()
            optimiser.step()
        curve.append(regret(model))
    return curve


pack = aimle.AIMLE(solver, nb_samples=4)
squares = learn(torch.nn.functional.mse_loss)
decisions = learn(lambda theta, true: -(true.unsqueeze(1) * pack(theta)).sum(-1).mean())
print(f"regret on new days: squared error {squares[-1]:.1f} %, through AIMLE {decisions[-1]:.1f} %")
assert decisions[-1] < squares[-1] / 2

parser = argparse.ArgumentParser()
parser.add_argument("--picture")
if picture := parser.parse_args().picture:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 2.8), layout="constrained")
    axes.plot(squares, label="squared error of the values")
    axes.plot(decisions, label="value of what is packed, through AIMLE")
    axes.set(xlabel="epoch", ylabel="regret on new days, %", ylim=(0, None))
    axes.legend()
    figure.savefig(picture, dpi=100)
