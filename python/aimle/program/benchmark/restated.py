"""Small restatements in Python of the experiments of `aimle train`, only to be diagnosed.

The structure, the number of ones, the noise and the kind of loss are those of the experiment; the
networks are smaller, and the data are generated or scikit-learn's digits. `aimle benchmark advice`
compares what `aimle.diagnose` recommends for them with the results of the experiments themselves.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

import aimle
from aimle.program.benchmark import digits
from aimle.program.benchmark.models import Model, Probe, Recipe
from aimle.program.benchmark.small_tasks import decision, network

_ROWS, _SIZE = 20, 20  # of a code
_IMAGES_AT_ONCE, _IMAGES_DIAGNOSED = 64, 8
_STEPS_OF_CODES = 600  # before them, the scores of codes are close to zero


def codes(k: int, samples: int) -> Callable[[int], Probe]:
    """The discrete VAE, on digits of 8 x 8 pixels.

    All rows of a code share the loss of an image. The first row is diagnosed, given the others.
    """

    def probe(seed: int) -> Probe:
        images, _ = digits.data()
        torch.manual_seed(seed)
        encode = network(digits.PIXELS, 128, _ROWS * _SIZE)
        decode = network(_ROWS * _SIZE, 128, digits.PIXELS)
        solver = aimle.Argmax() if k == 1 else aimle.TopK(k)
        noise = aimle.Gumbel() if k == 1 else aimle.SumOfGamma(k)
        layer = aimle.AIMLE(solver, nb_samples=samples, noise=noise)

        def losses(z: Tensor, x: Tensor) -> Tensor:  # z [B, S, rows, size]
            logits = decode(z.flatten(2))
            return (functional.softplus(logits) - logits * x.unsqueeze(1)).sum(-1)

        optimiser = torch.optim.Adam([*encode.parameters(), *decode.parameters()], lr=1e-3)
        for _ in range(_STEPS_OF_CODES):
            x = images[torch.randint(digits.TRAINING_IMAGES, (_IMAGES_AT_ONCE,))]
            theta = encode(x).view(-1, _ROWS, _SIZE)
            q = theta.softmax(-1)
            kl = (q * (q.log() + math.log(_SIZE))).sum((1, 2))
            bce = losses(layer(theta).transpose(1, 2), x).sum(1)
            optimiser.zero_grad()
            (bce + kl).mean().backward()
            optimiser.step()
        x = images[:_IMAGES_DIAGNOSED]
        theta = encode(x).view(-1, _ROWS, _SIZE).detach()
        others = layer(theta)[:, 1:, :1].transpose(1, 2).detach()  # [B, 1, rows - 1, size]

        def first_row(z: Tensor) -> Tensor:
            rest = others.expand(-1, z.shape[1], -1, -1)
            return losses(torch.cat([z.unsqueeze(2), rest], 2), x)

        return Probe(layer, theta[:, 0], first_row)

    return probe


def maps(cells: int) -> Callable[[int], Probe]:
    """Shortest paths: costs from features instead of pictures, the number of wrong cells."""
    build = decision(aimle.GridPath(), (cells, cells), "wrong", functional.softplus)
    return Recipe(build, layer={"noise": aimle.SumOfGamma(cells)}).probe


def _words() -> Model:
    """Ratings of reviews by 10 of their 60 words; a fifth of the vocabulary has a sentiment."""
    examples, length, vocabulary, size = 1000, 60, 300, 20
    vectors = torch.randn(vocabulary, size)
    sentiment = torch.randn(vocabulary) * (torch.arange(vocabulary) % 5 == 0)
    reviews = torch.randint(vocabulary, (examples, length))
    ratings = torch.sigmoid(sentiment[reviews].sum(-1) / 3)
    select = nn.Sequential(
        nn.Conv1d(size, 32, 3, padding=1), nn.ReLU(), nn.Conv1d(32, 1, 1), nn.Flatten(1)
    )
    predict = network(size, 32, 1)
    solver = aimle.TopK(10)

    def losses(z: Tensor, rows: Tensor) -> Tensor:
        mean = z @ vectors[reviews[rows]] / solver.k
        return (predict(mean).squeeze(-1).sigmoid() - ratings[rows].unsqueeze(1)).square()

    def scores(rows: Tensor) -> Tensor:
        return select(vectors[reviews[rows]].transpose(1, 2))

    networks = nn.ModuleList([select, predict])
    return Model(solver, networks, examples, tests=0, scores=scores, losses=losses)


def words(seed: int) -> Probe:
    """Learning to explain; it stands for both data sets."""
    return Recipe(_words).probe(seed)


def _trees() -> Model:
    """Ten points move towards their neighbours in a random tree; the next step is predicted."""
    examples, points = 1000, 10
    solver = aimle.SpanningTree(points)
    first, second = torch.triu_indices(points, points, 1)
    before = torch.randn(examples, points, 2)
    pull = 0.3

    def step(z: Tensor, x: Tensor, strength: Tensor | float) -> Tensor:
        difference = z.unsqueeze(-1) * (x[..., second, :] - x[..., first, :])
        moved = torch.zeros(*z.shape[:-1], points, 2)
        moved = moved.index_add(-2, first, difference).index_add(-2, second, -difference)
        return x + strength * moved

    after = step(solver(torch.rand(examples, len(first))), before, pull)
    seen = torch.cat([before, after], -1)
    encode = network(8, 32, 1)
    networks = nn.ModuleList([encode])
    strength = nn.Parameter(torch.tensor(0.1))
    networks.register_parameter("strength", strength)

    def losses(z: Tensor, rows: Tensor) -> Tensor:
        guess = step(z, before[rows].unsqueeze(1).expand(*z.shape[:2], -1, -1), strength)
        return (guess - after[rows].unsqueeze(1)).square().sum((-1, -2)) / 0.1

    def scores(rows: Tensor) -> Tensor:
        pair = torch.cat([seen[rows][:, first], seen[rows][:, second]], -1)
        return encode(pair).squeeze(-1)

    return Model(solver, networks, examples, 0, scores, losses)


def trees(seed: int) -> Probe:
    """Latent trees of one step of motion."""
    noise = {"noise": aimle.SumOfGamma(10), "temperature": 0.1}
    return Recipe(_trees, layer=noise).probe(seed)
