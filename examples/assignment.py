"""Learns to sort pictures of digits from sets in the right order. [--picture FILE]"""

import sys

import torch

import aimle

FONT = (
    *("111101101101111", "010110010010111", "111001111100111", "111001011001111"),
    *("101101111001001", "111100111001111", "111100111101111", "111001010010010"),
    *("111101111101111", "111101111001111"),
)
GLYPHS = torch.tensor([[float(bit) for bit in glyph] for glyph in FONT]).reshape(10, 5, 3)
PLACES = torch.arange(5.0)


def pictures(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sets of five different digits, shifted and noisy, [count, 5, 7, 5], and their numbers."""
    numbers = torch.rand(count, 10).argsort(-1)[:, :5]
    canvas = 0.05 * torch.randn(count, 5, 7, 5)
    for shift in range(9):
        some, (row, column) = torch.arange(shift, count, 9), divmod(shift, 3)
        canvas[some, :, row : row + 5, column : column + 3] += GLYPHS[numbers[some]]
    return canvas, numbers


torch.manual_seed(0)
model = torch.nn.Sequential(  # how far to the right a picture belongs
    torch.nn.Flatten(2), torch.nn.Linear(35, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1)
)
layer = aimle.AIMLE(aimle.Assignment(), nb_samples=4, temperature=0.5)
optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(800):
    images, numbers = pictures(32)
    rank = numbers.argsort(-1).argsort(-1)  # the place of every picture
    z = layer(model(images) * PLACES)  # [32, 4, picture, place], one-to-one
    optimiser.zero_grad()
    ((z * PLACES).sum(-1) - rank.unsqueeze(1)).square().sum(-1).mean().backward()
    optimiser.step()
images, numbers = pictures(1000)
z = layer.eval()(model(images) * PLACES)[:, 0]
right = (z.argmax(-2) == numbers.argsort(-1)).float().mean().item()
print(f"{right:.1%} of the pictures are in their place")
assert right > 0.8
if "--picture" in sys.argv:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(4, 2, figsize=(4, 3))
    for (before, after), image, choice in zip(axes, images, z, strict=False):
        before.imshow(torch.cat(tuple(image), -1), cmap="gray_r")
        after.imshow(torch.cat(tuple(image[choice.argmax(-2)]), -1), cmap="gray_r")
    for axis in axes.flat:
        axis.axis("off")
    figure.savefig(sys.argv[-1], dpi=70, bbox_inches="tight")
