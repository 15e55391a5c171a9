"""Trains a tagger with a custom solver: python train.py build/custom_solver/libviterbi.so"""

import sys

import torch

import aimle

LENGTH, LABELS = 12, 5

print("loaded", *aimle.load_library(sys.argv[1]))
chain = aimle.solver("viterbi", length=LENGTH, labels=LABELS)

# Sequences whose labels are observed with noise; a label is mostly followed by itself or the next.
torch.manual_seed(0)
steps = torch.randint(2, (256, LENGTH)).cumsum(1) % LABELS
seen = torch.nn.functional.one_hot(steps, LABELS).float() + 0.7 * torch.randn(256, LENGTH, LABELS)
wanted = torch.nn.functional.one_hot(steps, LABELS).float()

emit = torch.nn.Linear(LABELS, LABELS)
follow = torch.nn.Parameter(torch.zeros(LABELS, LABELS))
layer = aimle.AIMLE(chain, nb_samples=4)
optimizer = torch.optim.Adam([*emit.parameters(), follow], lr=0.02)


def labels_of(z: torch.Tensor) -> torch.Tensor:
    """[..., length, labels]: the label before every transition, and the one after the last."""
    return torch.cat([z.sum(-1), z[..., -1:, :, :].sum(-2)], dim=-2)


def scores() -> torch.Tensor:
    emitted = emit(seen)
    theta = follow + emitted[:, 1:, None, :]
    return torch.cat([theta[:, :1] + emitted[:, :1, :, None], theta[:, 1:]], dim=1)


for step in range(150):
    loss = (labels_of(layer(scores())) - wanted[:, None]).square().sum((-1, -2)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.2f}")

right = (labels_of(chain(scores())).argmax(-1) == steps).float().mean()
alone = (seen.argmax(-1) == steps).float().mean()
print(f"{right:.0%} of the labels right; {alone:.0%} by each position alone")
