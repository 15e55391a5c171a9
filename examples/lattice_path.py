"""Learns which frames belong to which letter from recordings and their texts alone.

Letters last for one to six noisy frames. The loss is how well they explain their frames.
"""

import argparse

import torch

import aimle

LETTERS, FEATURES, TEXTS = 6, 8, 96


def recordings(seed: int) -> tuple[torch.Tensor, ...]:
    """Texts [B, U], frames [B, T, features], mask [B, T, U] and the true alignments [B, T, U]."""
    torch.manual_seed(seed)
    texts = torch.randint(1, LETTERS, (TEXTS, 9)).cumsum(1) % LETTERS  # none twice in a row
    lasts = torch.randint(1, 7, texts.shape) * (torch.arange(9) < torch.randint(5, 10, (TEXTS, 1)))
    ends = lasts.cumsum(1).unsqueeze(1)
    time = torch.arange(int(ends.max())).view(1, -1, 1)
    truth = ((time >= ends - lasts.unsqueeze(1)) & (time < ends)).float()
    mask = (lasts > 0).unsqueeze(1) & (time < ends[..., -1:])
    noise = 0.7 * torch.randn(*truth.shape[:2], FEATURES) * mask.any(2, keepdim=True)
    return texts, truth @ torch.randn(LETTERS, FEATURES)[texts] + noise, mask, truth


def align(texts: torch.Tensor, frames: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    listen = torch.nn.Linear(FEATURES, LETTERS)
    sounds = torch.nn.Parameter(0.1 * torch.randn(LETTERS, FEATURES))
    layer = aimle.AIMLE(aimle.LatticePath(moves="diagonal"), nb_samples=4, temperature=1.0)
    optimiser = torch.optim.Adam([*listen.parameters(), sounds], lr=0.03)
    letters = texts.unsqueeze(1).expand(mask.shape)
    for _ in range(300):
        z = layer(listen(frames).gather(2, letters), mask=mask)  # [B, samples, T, U]
        loss = (z @ sounds[texts].unsqueeze(1) - frames.unsqueeze(1)).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return layer.solver(listen(frames).gather(2, letters).detach(), mask=mask)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--picture", metavar="FILE")
    *data, truth = recordings(seed=1)
    found = align(*data)
    right = ((found * truth).sum() / truth.sum()).item()
    print(f"{right:.1%} of the frames belong to the right letter")
    assert right > 0.9
    if picture := parser.parse_args().picture:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(1, 3, figsize=(8, 2.2), layout="constrained")
        for axis, z, true in zip(axes, found, truth, strict=False):
            axis.imshow(z.T, cmap="Blues", vmax=2, aspect="auto")
            axis.plot(*true.nonzero().T, "k.", markersize=3)
            axis.set(xlabel="frame", ylabel="letter", xlim=(-1, true.sum()))
        figure.savefig(picture, dpi=80)
