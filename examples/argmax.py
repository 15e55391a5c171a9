"""A discrete auto-encoder: learns codes of two letters for noisy digits. [--picture FILE]"""

import sys

import torch

import aimle

FONT = (
    *("111101101101111", "010110010010111", "111001111100111", "111001011001111"),
    *("101101111001001", "111100111001111", "111100111101111", "111001010010010"),
    *("111101111101111", "111101111001111"),
)
GLYPHS = torch.tensor([[float(bit) for bit in glyph] for glyph in FONT])
LETTERS = 6  # of the alphabet: there are 36 codes


def batch(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Pictures [count, 15] and the digits that they show, which only the evaluation uses."""
    digits = torch.randint(10, (count,))
    return GLYPHS[digits] + 0.2 * torch.randn(count, 15), digits


def network(inputs: int, outputs: int) -> list[torch.nn.Module]:
    return [torch.nn.Linear(inputs, 64), torch.nn.ReLU(), torch.nn.Linear(64, outputs)]


torch.manual_seed(0)
encoder = torch.nn.Sequential(*network(15, 2 * LETTERS), torch.nn.Unflatten(1, (2, LETTERS)))
decoder = torch.nn.Sequential(torch.nn.Flatten(1), *network(2 * LETTERS, 15))
layer = aimle.AIMLE(aimle.Argmax())
optimiser = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.01)
for _ in range(1000):
    pictures, _ = batch(128)
    z = layer(encoder(pictures))  # [128, 2, 1, 6]: one of six for both letters
    optimiser.zero_grad()
    (decoder(z) - pictures).square().sum(-1).mean().backward()
    optimiser.step()

pictures, digits = batch(5000)
first, second = layer.eval()(encoder(pictures)).argmax(-1).squeeze(-1).T
counts = torch.zeros(LETTERS, LETTERS, 10)
counts.index_put_((first, second, digits), torch.ones(5000), accumulate=True)
known = counts.amax(-1).sum().item() / 5000
print(f"the code tells the digit of {known:.1%} of the pictures")
assert known > 0.9
if "--picture" in sys.argv:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(LETTERS, LETTERS, figsize=(3, 4))
    for i, row in enumerate(axes):
        for j, axis in enumerate(row):
            axis.axis("off")
            if counts[i, j].sum() >= 25:  # only codes in use: half a percent of the pictures
                z = torch.eye(LETTERS)[[i, j]].unsqueeze(0)
                axis.imshow(decoder(z).detach().view(5, 3), cmap="Greys", vmin=0, vmax=1)
    figure.savefig(sys.argv[-1], dpi=70, bbox_inches="tight")
