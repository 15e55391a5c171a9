"""Finds the tree of rooms that exchange heat, from few noisy temperatures. [--picture FILE]"""

import sys

import torch

import aimle

HOUSES, ROOMS, TIMES = 16, 10, 8
PAIRS = torch.combinations(torch.arange(ROOMS))  # [45, 2], in the order of the edges of a tree
ENDS = torch.zeros(len(PAIRS), ROOMS)  # a row per pair: 1 for one room, -1 for the other
ENDS.scatter_(1, PAIRS, torch.tensor([1.0, -1.0]).expand(len(PAIRS), 2))


def heat(z: torch.Tensor, warmth: torch.Tensor) -> torch.Tensor:
    """What rooms [..., T, 10] gain: a pair exchanges its difference where z [..., 45] is one."""
    return -(z.unsqueeze(-2) * (warmth @ ENDS.T)) @ ENDS


torch.manual_seed(0)
solver = aimle.SpanningTree(ROOMS)
trees = solver(torch.randn(HOUSES, len(PAIRS)))
warmth = torch.randn(HOUSES, TIMES, ROOMS)
gains = heat(trees, warmth) + torch.randn(HOUSES, TIMES, ROOMS)  # what is measured
theta = torch.nn.Parameter(torch.zeros(HOUSES, len(PAIRS)))
layer = aimle.AIMLE(solver)
optimiser = torch.optim.Adam([theta], lr=0.05)
for _ in range(500):
    z = layer(theta)  # [16, 1, 45], nine ones that connect the ten rooms
    errors = heat(z, warmth.unsqueeze(1)) - gains.unsqueeze(1)
    optimiser.zero_grad()
    errors.square().sum((-1, -2)).mean().backward()
    optimiser.step()


def right(found: torch.Tensor) -> float:
    return (found * trees).sum().item() / trees.sum().item()


found = layer.eval()(theta)[:, 0].detach()
effects = torch.stack([heat(pair, warmth).flatten(1) for pair in torch.eye(len(PAIRS))], -1)
fit = torch.linalg.lstsq(effects, gains.flatten(1).unsqueeze(-1)).solution.squeeze(-1)
print(f"edges found: {right(found):.1%}; by least squares, then a tree: {right(solver(fit)):.1%}")
assert right(found) > right(solver(fit)) + 0.1
if "--picture" in sys.argv:
    from matplotlib import pyplot

    turn = torch.arange(ROOMS) * 2 * torch.pi / ROOMS
    places = torch.stack([turn.cos(), turn.sin()])
    _, axes = pyplot.subplots(1, 4, figsize=(7, 1.9), layout="constrained")
    for axis, ours, true in zip(axes, found, trees, strict=False):
        for pair in PAIRS[true > 0]:
            axis.plot(*places[:, pair], color="lightgrey", linewidth=6)
        for pair in PAIRS[ours > 0]:
            axis.plot(*places[:, pair], color="black", linewidth=1.5)
        axis.axis("off")
    pyplot.savefig(sys.argv[-1], dpi=80)
