"""Explains ratings: learns which three words of a review matter. [--picture FILE]"""

import random
import sys

import torch

import aimle

WORTH = {"superb": 2, "charming": 1, "fresh": 1, "clumsy": -1, "dull": -1, "awful": -2}
PLAIN = "the a film plot actor scene music camera with and was of in story end script its"
VOCABULARY, LONGEST = ["", *WORTH, *PLAIN.split()], 14


def reviews(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Word numbers [count, 14], padded with 0, and ratings: the worth of three of the words."""
    rng, rows, ratings = random.Random(seed), [], []
    for _ in range(count):
        loaded = rng.sample(list(WORTH), 3)
        words = loaded + rng.choices(PLAIN.split(), k=rng.randint(5, LONGEST - 3))
        rng.shuffle(words)
        rows.append([VOCABULARY.index(w) for w in words] + [0] * (LONGEST - len(words)))
        ratings.append(sum(WORTH[word] for word in loaded) + rng.gauss(0, 0.5))
    return torch.tensor(rows), torch.tensor(ratings)


torch.manual_seed(0)
selector = torch.nn.Embedding(len(VOCABULARY), 1)  # how much a word matters
predictor = torch.nn.Embedding(len(VOCABULARY), 1)  # what a chosen word adds to the rating
layer = aimle.AIMLE(aimle.TopK(3))
optimiser = torch.optim.Adam([*selector.parameters(), *predictor.parameters()], lr=0.05)
words, ratings = reviews(1000, seed=0)
for _ in range(20):
    for batch in torch.randperm(len(words)).split(50):
        text = words[batch]
        z = layer(selector(text).squeeze(-1), mask=text > 0)  # [50, 1, 14], three ones in each
        guess = (z * predictor(text).squeeze(-1).unsqueeze(1)).sum(-1)
        optimiser.zero_grad()
        (guess - ratings[batch].unsqueeze(1)).square().mean().backward()
        optimiser.step()

words, ratings = reviews(200, seed=1)
z = layer.eval()(selector(words).squeeze(-1), mask=words > 0)[:, 0]
right = z[words <= len(WORTH)].sum().item() / z.sum().item()
print(f"{right:.1%} of the chosen words are those that matter")
assert right > 0.95
if "--picture" in sys.argv:
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(7.5, 1.2))
    for row in range(4):
        place = 0.0
        for word, chosen in zip(words[row].tolist(), z[row].tolist(), strict=True):
            style = {"color": "tab:blue", "weight": "bold"} if chosen else {"color": "grey"}
            figure.text(place, -0.25 * row, VOCABULARY[word], family="monospace", **style)
            place += 0.012 * (len(VOCABULARY[word]) + 1)
    figure.savefig(sys.argv[-1], dpi=80, bbox_inches="tight")
