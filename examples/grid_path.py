"""Learns what terrain costs from maps and the paths that people took. [--picture FILE]"""

import sys

import torch

import aimle

SIDE, MAPS = 12, 500
TERRAIN = {  # colour on the map, and the cost of a step, which is not shown in training
    "grass": ((0.5, 0.8, 0.3), 1.0),
    "forest": ((0.1, 0.4, 0.1), 3.0),
    "rock": ((0.5, 0.45, 0.4), 6.0),
    "water": ((0.2, 0.4, 0.9), 10.0),
}
COLOURS, COSTS = map(torch.tensor, zip(*TERRAIN.values(), strict=True))


def maps(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Noisy colours [count, 12, 12, 3] and true costs [count, 12, 12]."""
    coarse = torch.randn(count, len(TERRAIN), 5, 5)
    kinds = torch.nn.functional.interpolate(coarse, (SIDE, SIDE), mode="bilinear").argmax(1)
    return COLOURS[kinds] + 0.1 * torch.randn(count, SIDE, SIDE, 3), COSTS[kinds]


torch.manual_seed(0)
solver = aimle.GridPath()  # from the first cell to the last, to any of eight neighbours
model = torch.nn.Sequential(
    *(torch.nn.Linear(3, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)),
    *(torch.nn.Softplus(), torch.nn.Flatten(-2)),
)
layer = aimle.AIMLE(solver)
optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
pictures, costs = maps(MAPS)
paths = solver(costs)
for _ in range(15):
    for batch in torch.randperm(MAPS).split(50):
        z = layer(model(pictures[batch]))  # [50, 1, 12, 12], ones on the path
        optimiser.zero_grad()
        (z - paths[batch].unsqueeze(1)).abs().sum((-1, -2)).mean().backward()
        optimiser.step()

pictures, costs = maps(200)
found, best = solver(model(pictures).detach()), solver(costs)
excess = (costs * found).sum().item() / (costs * best).sum().item() - 1
print(f"on new maps, the paths cost {excess:.1%} more than the best ones")
assert excess < 0.06
if "--picture" in sys.argv:
    from matplotlib import pyplot

    _, axes = pyplot.subplots(1, 3, figsize=(6, 2.2), layout="constrained")
    for axis, image, ours, true in zip(axes, pictures, found, best, strict=False):
        axis.imshow(image.clamp(0, 1))
        axis.plot(*true.nonzero().T.flip(0), "o", color="black", markersize=6)
        axis.plot(*ours.nonzero().T.flip(0), "o", color="white", markersize=3)
        axis.axis("off")
    pyplot.savefig(sys.argv[-1], dpi=80)
