"""Learns a mask: the smallest set of pixels that identifies ten noisy digits. [--picture FILE]"""

import sys

import torch

import aimle

#   a        The segments of a display, as rows and columns of 9 x 7 pixels.
# f   b
#   g
# e   c
#   d
FIRST = {"a": (1, 2), "b": (2, 5), "c": (5, 5), "d": (7, 2), "e": (5, 1), "f": (2, 1), "g": (4, 2)}
LIT = ["abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgecd", "abc", "abcdefg", "abcdfg"]
DIGITS = torch.zeros(10, 9, 7)
for digit, lit in enumerate(LIT):
    for segment in lit:
        (y, x), (high, wide) = FIRST[segment], (1, 3) if segment in "adg" else (2, 1)
        DIGITS[digit, y : y + high, x : x + wide] = 1.0


def batch(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    labels = torch.randint(10, (count,))
    return (DIGITS[labels] + 0.3 * torch.randn(count, 9, 7)).flatten(1), labels


torch.manual_seed(0)
logits = torch.nn.Parameter(torch.zeros(63))
layer = aimle.AIMLE(aimle.Bernoulli(), nb_samples=4)
classifier = torch.nn.Sequential(torch.nn.Linear(63, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimiser = torch.optim.Adam(
    [{"params": [logits], "lr": 0.05}, {"params": classifier.parameters()}]
)
for _ in range(1500):
    pixels, labels = batch(128)
    z = layer(logits.unsqueeze(0)).squeeze(0)  # [4, 63], hard masks
    guesses = classifier(pixels * z.unsqueeze(1)).flatten(0, 1)
    wrong = torch.nn.functional.cross_entropy(guesses, labels.repeat(4))
    optimiser.zero_grad()
    (wrong + 0.01 * z.sum(-1).mean()).backward()  # a pixel costs 0.01
    optimiser.step()

mask = aimle.Bernoulli()(logits.detach())
pixels, labels = batch(5000)
right = (classifier(pixels * mask).argmax(-1) == labels).double().mean().item()
print(f"{int(mask.sum())} of 63 pixels tell {right:.1%} of the digits")
assert right > 0.95
assert mask.sum() < 25
assert not mask.view(9, 7)[[0, 8]].any()  # the margin has no information
if "--picture" in sys.argv:
    from matplotlib import pyplot

    _, axes = pyplot.subplots(1, 3, figsize=(5, 2.2))
    images = {"mean digit": DIGITS.mean(0), "chance of a pixel": logits.sigmoid(), "mask": mask}
    for axis, (title, image) in zip(axes, images.items(), strict=True):
        axis.imshow(image.detach().view(9, 7), cmap="Greys", vmin=0, vmax=1)
        axis.set(title=title, xticks=[], yticks=[])
    pyplot.savefig(sys.argv[-1], dpi=80, bbox_inches="tight")
