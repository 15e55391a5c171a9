"""Tasks that were not used to write the rule of `aimle.diagnose`: small models, trained in seconds.

Three choose parts of a network on scikit-learn's digits:

    experts   one of 8 linear classifiers for each image
    bits      a code of 24 independent bits, from which the image is decoded
    pixels    10 of 64 pixels for a classifier

Five predict the scores or costs of a problem from features, and are trained with the number of
wrong entries of the solution, or with its regret:

    tree      the best spanning tree of 7 vertices
    tags      the best sequence of 8 tags out of 4
    path      the cheapest path over 7 x 7 cells
    packing   the most valuable of 12 items
    matching  the best assignment of 6 to 6
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

import aimle
from aimle.program.benchmark import digits
from aimle.program.benchmark.models import Model, Recipe
from aimle.program.benchmark.task import PythonTask, Task

_IMAGES = digits.TRAINING_IMAGES
_FEATURES, _TRAINING, _TEST = 6, 400, 300
_DATA_SEED = 7
_LAMBDAS = ("0.1", "1", "10", "100", "1000")
_OF_ARGMAX = ("reinmax", "gumbel_rao", "gumbel_softmax")


def network(*sizes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for size, following in itertools.pairwise(sizes):
        layers += [nn.Linear(size, following), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _cross_entropies(logits: Tensor, labels: Tensor) -> Tensor:
    """Of logits [B, S, classes] and labels [B]."""
    return functional.cross_entropy(
        logits.transpose(1, 2), labels.unsqueeze(1).expand(logits.shape[:2]), reduction="none"
    )


def _classifier(
    solver: aimle.Solver,
    score: nn.Module,
    rest: nn.Module,
    logits: Callable[[Tensor, Tensor], Tensor],
) -> Model:
    """Logits [B, S, classes] of choices z [B, S, n] and images [B, 64]; the metric is accuracy."""
    images, labels = digits.data()

    def measure() -> float:
        test = images[_IMAGES:]
        chosen = solver(score(test)).unsqueeze(1)
        right = logits(chosen, test).squeeze(1).argmax(-1) == labels[_IMAGES:]
        return right.double().mean().item()

    return Model(
        solver,
        nn.ModuleList([score, rest]),
        _IMAGES,
        scores=lambda rows: score(images[rows]),
        losses=lambda z, rows: _cross_entropies(logits(z, images[rows]), labels[rows]),
        measure=measure,
    )


def experts() -> Model:
    count, classes = 8, digits.CLASSES
    each = nn.Linear(digits.PIXELS, count * classes)

    def logits(z: Tensor, images: Tensor) -> Tensor:
        return torch.einsum("bse,bec->bsc", z, each(images).view(-1, count, classes))

    return _classifier(aimle.Argmax(), network(digits.PIXELS, 32, count), each, logits)


def pixels() -> Model:
    classify = network(digits.PIXELS, 64, digits.CLASSES)
    score = network(digits.PIXELS, 64, digits.PIXELS)
    return _classifier(aimle.TopK(10), score, classify, lambda z, x: classify(z * x.unsqueeze(1)))


def bits() -> Model:
    images, _ = digits.data()
    encode, decode = network(digits.PIXELS, 64, 24), network(24, 64, digits.PIXELS)

    def losses(z: Tensor, x: Tensor) -> Tensor:
        logits = decode(z)
        return (functional.softplus(logits) - logits * x.unsqueeze(1)).sum(-1)

    def measure() -> float:
        test = images[_IMAGES:]
        return losses(aimle.Bernoulli()(encode(test)).unsqueeze(1), test).mean().item()

    return Model(
        aimle.Bernoulli(),
        nn.ModuleList([encode, decode]),
        _IMAGES,
        scores=lambda rows: encode(images[rows]),
        losses=lambda z, rows: losses(z, images[rows]),
        measure=measure,
    )


def decision(
    solver: aimle.Solver, shape: tuple[int, ...], loss: str, link: Callable[[Tensor], Tensor]
) -> Callable[[], Model]:
    """Predicts link(a network of the features); the true numbers are a cubic of the features.

    The metric is the regret of the test examples in per cent of their optimum.
    """
    sign = 1.0 if solver.sense == "min" else -1.0

    def build() -> Model:
        size = torch.Size(shape).numel()
        fixed = torch.Generator().manual_seed(_DATA_SEED)
        features = torch.randn(_TRAINING + _TEST, _FEATURES, generator=fixed)
        mixing = torch.randn(_FEATURES, size, generator=fixed) / _FEATURES**0.5
        spread = 1 + 0.2 * torch.rand(len(features), size, generator=fixed)
        true = ((1 + 0.3 * features @ mixing).pow(3).abs() * spread).view(-1, *shape)
        best = solver(true)
        predict = nn.Linear(_FEATURES, size)

        def scores(rows: Tensor) -> Tensor:
            return link(predict(features[rows])).view(-1, *shape)

        def losses(z: Tensor, rows: Tensor) -> Tensor:
            right, price = best[rows].unsqueeze(1), true[rows].unsqueeze(1)
            if loss == "wrong":  # |z - right| for zeros and ones, with a gradient everywhere
                return (z * (1 - 2 * right) + right).flatten(2).sum(-1)
            return sign * (price * (z - right)).flatten(2).sum(-1)

        def measure() -> float:
            rows = torch.arange(_TRAINING, _TRAINING + _TEST)
            excess = (solver(scores(rows)) - best[rows]) * true[rows]
            return 100 * sign * (excess.sum() / (best[rows] * true[rows]).sum()).item()

        return Model(solver, predict, _TRAINING, scores, losses, measure)

    return build


def _same(x: Tensor) -> Tensor:
    return x


def _task(
    name: str,
    title: str,
    recipe: Recipe,
    ones: float,
    more: tuple[str, ...],
    metric: str,
    data: str = "generated",
) -> PythonTask:
    return PythonTask(
        name=f"{name}-s{recipe.samples}",
        title=f"{title}, S = {recipe.samples}",
        metric=metric,
        higher_is_better=metric == "test_accuracy",
        methods=("default", "paper", "imle", "imle_central", "noise", *more),
        lambdas=_LAMBDAS,
        ones=ones,
        samples=recipe.samples,
        length=f"{recipe.steps} steps",
        quick_length=f"{recipe.quick_steps} steps",
        data=data,
        train=recipe,
        probe=recipe.probe,
        packages=() if data == "generated" else ("scikit-learn",),
    )


def _of_digits() -> Iterator[PythonTask]:
    exact = ("thresholds", "exact")
    for name, title, build, ones, more, metric in (
        ("experts", "1 of 8 experts", experts, 1, (*exact, *_OF_ARGMAX), "test_accuracy"),
        ("bits", "24 bits", bits, 12, (*exact, "sst"), "test_bce"),
        ("pixels", "10 of 64 pixels", pixels, 10, (*exact, "sst"), "test_accuracy"),
    ):
        for samples in (1, 10):
            recipe = Recipe(build, samples=samples)
            yield _task(name, title, recipe, ones, more, metric, "scikit-learn's digits")


def _of_decisions() -> Iterator[PythonTask]:
    weights = [3, 5, 2, 7, 4, 6, 3, 8, 5, 4, 2, 6]
    exact = ("thresholds", "exact")
    for name, title, solver, shape, link, ones, more in (
        ("tree", "Spanning trees", aimle.SpanningTree(7), (21,), _same, 6, exact),
        ("tags", "Sequences of tags", aimle.Chain(), (7, 4, 4), _same, 7, exact),
        ("path", "Paths over cells", aimle.GridPath(), (7, 7), functional.softplus, 8, ()),
        ("packing", "Packing", aimle.Knapsack(weights, capacity=20), (12,), _same, 5, ()),
        ("matching", "Matching", aimle.Assignment(), (6, 6), _same, 6, ()),
    ):
        for loss, words in (("wrong", "wrong entries"), ("regret", "regret as the loss")):
            recipe = Recipe(decision(solver, shape, loss, link), learning_rate=1e-2)
            more_of_it = (*more, "identity")
            yield _task(
                f"{name}-{loss}", f"{title}, {words}", recipe, ones, more_of_it, "regret_percent"
            )


TASKS: dict[str, Task] = {task.name: task for task in (*_of_digits(), *_of_decisions())}
