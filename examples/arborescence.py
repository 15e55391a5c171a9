"""A parser: learns the heads of the words in toy sentences from trees. [--picture FILE]"""

import random
import sys

import torch

import aimle

NOUNS, TOOLS, LONGEST = ["man", "dog", "girl", "hat"], ["telescope", "stick"], 11
WORDS = ["", "the", "old", "saw", "hit", "with", *NOUNS, *TOOLS]


def batch(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Words such as "the old man saw a dog with a hat", [count, LONGEST], trees and a mask."""
    rng, words = random.Random(seed), torch.zeros(count, LONGEST, dtype=torch.long)
    trees = torch.zeros(count, LONGEST, LONGEST)
    for row in range(count):
        nouns = [rng.choice(NOUNS), rng.choice(NOUNS), rng.choice(NOUNS + TOOLS)]
        phrases = [["the", *["old"] * rng.randint(0, 1), noun] for noun in nouns]
        text = [*phrases[0], rng.choice(["saw", "hit"]), *phrases[1], "with", *phrases[2]]
        verb, thing, last = len(phrases[0]), text.index("with") - 1, len(text) - 1
        heads = [verb - 1] * (verb - 1) + [verb, verb] + [thing] * (thing - verb - 1) + [verb]
        heads += [verb if nouns[2] in TOOLS else thing]  # saw with a stick; a man with a hat
        heads += [last] * (last - thing - 2) + [thing + 1] + [0] * (LONGEST - len(text))
        words[row, : len(text)] = torch.tensor(list(map(WORDS.index, text)))
        trees[row, heads, range(LONGEST)] = 1
    mask = (words > 0).unsqueeze(-1) & (words > 0).unsqueeze(-2)
    mask[:, 0] |= words == 0  # attach padding to the first word
    return words, trees, mask


torch.manual_seed(0)
embedding, sides = torch.nn.Embedding(len(WORDS), 16), torch.nn.Linear(64, 64)
context = torch.nn.GRU(16, 32, batch_first=True, bidirectional=True)
layer = aimle.AIMLE(solver := aimle.Arborescence(single_root=True), nb_samples=2)
optimiser = torch.optim.Adam([p for m in (embedding, context, sides) for p in m.parameters()], 0.01)

for step in range(101):
    words, trees, mask = batch(32 if step < 100 else 200, seed=step)
    head, dependent = sides(context(embedding(words))[0]).chunk(2, -1)
    theta = head @ dependent.mT  # [count, head, dependent]
    z = layer(theta, mask=mask)
    optimiser.zero_grad()
    (z - trees.unsqueeze(1)).square().sum((-1, -2)).mean().backward()
    optimiser.step()
z = solver(theta, mask=mask)  # for 200 sentences not seen in training
right = (z * trees).sum(-2)[words > 0].mean().item()
print(f"heads found: {right:.1%}")
assert right > 0.97
if "--picture" in sys.argv:
    from matplotlib import pyplot

    text = [WORDS[word] for word in words[0][words[0] > 0]]
    p = aimle.exact.marginals(solver, theta[0].detach(), mask=mask[0])
    pyplot.imshow(p[: len(text), : len(text)], cmap="Blues")
    pyplot.xticks(range(len(text)), text, rotation=90)
    pyplot.yticks(range(len(text)), text)
    pyplot.savefig(sys.argv[-1], dpi=60, bbox_inches="tight")
