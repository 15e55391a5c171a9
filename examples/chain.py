"""A tagger: learns parts of speech of ambiguous words from neighbours. [--picture FILE]"""

import random
import sys

import torch

import aimle

WORDS = {
    "determiner": "the a",
    "adjective": "old light fast fat",
    "noun": "man light fish saw fat",
    "verb": "saw fish man light fast",
    "stop": ".",
}
TAGS, VOCABULARY, LONGEST = list(WORDS), sorted({*" ".join(WORDS.values()).split()}), 10


def sentences(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rng, rows = random.Random(seed), []  # "the old man saw a fish .", and the like
    for _ in range(count):
        two = [["determiner"] + ["adjective"] * rng.randint(0, 2) + ["noun"] for _ in range(2)]
        tags = [*two[0], "verb", *two[1], "stop"]
        words = [VOCABULARY.index(rng.choice(WORDS[tag].split())) for tag in tags]
        rows.append(list(zip(words, map(TAGS.index, tags), strict=True)))
    padded = torch.tensor([row + [(0, 0)] * (LONGEST - len(row)) for row in rows])
    return padded[..., 0], padded[..., 1], torch.tensor([len(row) for row in rows])


torch.manual_seed(0)
emissions = torch.nn.Embedding(len(VOCABULARY), len(TAGS))
transitions = torch.nn.Parameter(torch.zeros(len(TAGS), len(TAGS)))
layer = aimle.AIMLE(aimle.Chain(), nb_samples=4)
optimiser = torch.optim.Adam([*emissions.parameters(), transitions], lr=0.1)
words, tags, lengths = sentences(200, seed=0)
mask, one_hot = aimle.chain_mask(lengths, LONGEST), torch.eye(len(TAGS))[tags]
wanted = one_hot[:, :-1, :, None] * one_hot[:, 1:, None, :] * mask  # the edges of the true tags
for _ in range(60):
    z = layer(aimle.chain_scores(emissions(words), transitions), mask=mask)
    optimiser.zero_grad()
    (z - wanted.unsqueeze(1)).square().sum((-1, -2, -3)).mean().backward()
    optimiser.step()
words, tags, lengths = sentences(100, seed=1)
mask, scores = aimle.chain_mask(lengths, LONGEST), aimle.chain_scores(emissions(words), transitions)
found = aimle.chain_labels(aimle.Chain()(scores, mask=mask))
right = (found == tags)[found >= 0].double().mean().item()
alone = (emissions(words).argmax(-1) == tags)[found >= 0].double().mean().item()
print(f"tags found: {right:.1%}; by every word alone: {alone:.1%}")
assert right > 0.98 > alone + 0.1
if "--picture" in sys.argv:
    from matplotlib import pyplot

    row, p = int(lengths.argmax()), aimle.exact.marginals(aimle.Chain(), scores.detach(), mask=mask)
    pyplot.imshow(p[row].sum(1).T, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    pyplot.plot(found[row, 1:], "o-", color="black")
    pyplot.xticks(range(LONGEST - 1), [VOCABULARY[word] for word in words[row, 1:]])
    pyplot.yticks(range(len(TAGS)), TAGS)
    pyplot.savefig(sys.argv[-1], dpi=80, bbox_inches="tight")
