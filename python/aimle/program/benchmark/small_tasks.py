"""Small tasks, trained in seconds, to compare what `aimle.diagnose` recommends with training.

Three choose parts of a network on scikit-learn's digits:

    experts   one of n linear classifiers for each image
    bits      a code of n independent bits, from which the image is decoded
    pixels    n of 64 pixels for a classifier

Five predict the scores or costs of a problem from features, and are trained with the number of
wrong entries of the solution, or with its regret:

    tree      the best spanning tree of n vertices
    tags      the best sequence of n + 1 tags, each one of (n + 1) // 2
    path      the cheapest path over n x n cells
    packing   the most valuable of n items
    matching  the best assignment of n to n

Each has three sizes. The rule of `aimle.diagnose` was written with their results; the tasks of
held_out_tasks.py test it.
"""

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

import aimle
from aimle.program.benchmark import digits
from aimle.program.benchmark.models import Model, Recipe
from aimle.program.benchmark.task import PythonTask, Task

_IMAGES = digits.TRAINING_IMAGES
FEATURES, TRAINING, TEST = 6, 400, 300
_TOTALS = 4
_DATA_SEED = 7
_LAMBDAS = ("0.1", "1", "10", "100", "1000")
OF_ARGMAX = ("reinmax", "gumbel_rao", "gumbel_softmax")
DIGITS = "scikit-learn's digits"


def _same(x: Tensor) -> Tensor:
    return x


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


def classifier(
    solver: aimle.Solver,
    score: nn.Module,
    rest: nn.Module,
    logits: Callable[[Tensor, Tensor], Tensor],
    data: tuple[Tensor, Tensor] | None = None,
    training: int = _IMAGES,
) -> Model:
    """Logits [B, S, classes] of choices z [B, S, n] and images [B, 64]; the metric is accuracy.

    data: other inputs and labels than the digits, the first `training` of them for training.
    """
    images, labels = data or digits.data()

    def accuracy(z: Tensor, rows: Tensor) -> float:
        right = logits(z.unsqueeze(1), images[rows]).squeeze(1).argmax(-1) == labels[rows]
        return right.double().mean().item()

    return Model(
        solver,
        nn.ModuleList([score, rest]),
        training,
        len(images) - training,
        scores=lambda rows: score(images[rows]),
        losses=lambda z, rows: _cross_entropies(logits(z, images[rows]), labels[rows]),
        measure=accuracy,
    )


def experts(count: int) -> Model:
    classes = digits.CLASSES
    each = nn.Linear(digits.PIXELS, count * classes)

    def logits(z: Tensor, images: Tensor) -> Tensor:
        return torch.einsum("bse,bec->bsc", z, each(images).view(-1, count, classes))

    return classifier(aimle.Argmax(), network(digits.PIXELS, 32, count), each, logits)


def pixels(count: int) -> Model:
    classify = network(digits.PIXELS, 64, digits.CLASSES)
    score = network(digits.PIXELS, 64, digits.PIXELS)
    return classifier(aimle.TopK(count), score, classify, lambda z, x: classify(z * x.unsqueeze(1)))


def code(
    solver: aimle.Solver, shape: tuple[int, ...], link: Callable[[Tensor], Tensor] = _same
) -> Model:
    """Encodes an image as scores of this shape, and decodes it from their solution."""
    images, _ = digits.data()
    size = torch.Size(shape).numel()
    encode, decode = network(digits.PIXELS, 64, size), network(size, 64, digits.PIXELS)

    def scores(rows: Tensor) -> Tensor:
        return link(encode(images[rows])).view(-1, *shape)

    def losses(z: Tensor, rows: Tensor) -> Tensor:
        logits = decode(z.flatten(2))
        return (functional.softplus(logits) - logits * images[rows].unsqueeze(1)).sum(-1)

    networks = nn.ModuleList([encode, decode])
    return Model(solver, networks, _IMAGES, len(images) - _IMAGES, scores, losses)


def decision(
    solver: aimle.Solver, shape: tuple[int, ...], loss: str, link: Callable[[Tensor], Tensor]
) -> Callable[[], Model]:
    """Predicts link(a network of the features); the true numbers are a cubic of the features.

    The losses: "wrong", the number of wrong entries; "regret"; "overlap", one minus the entries
    that z and the best solution share divided by those of either; "totals", the squared error of
    fixed random sums of entries. The first two are linear in z, and their metric is the regret of
    the test examples in per cent of their optimum; that of the others is the loss itself.
    """
    sign = 1.0 if solver.sense == "min" else -1.0

    def build() -> Model:
        size = torch.Size(shape).numel()
        fixed = torch.Generator().manual_seed(_DATA_SEED)
        features = torch.randn(TRAINING + TEST, FEATURES, generator=fixed)
        mixing = torch.randn(FEATURES, size, generator=fixed) / FEATURES**0.5
        spread = 1 + 0.2 * torch.rand(len(features), size, generator=fixed)
        true = ((1 + 0.3 * features @ mixing).pow(3).abs() * spread).view(-1, *shape)
        best = solver(true)
        sums = torch.randn(size, _TOTALS, generator=fixed)
        predict = nn.Linear(FEATURES, size)

        def scores(rows: Tensor) -> Tensor:
            return link(predict(features[rows])).view(-1, *shape)

        def losses(z: Tensor, rows: Tensor) -> Tensor:
            right, price = best[rows].unsqueeze(1), true[rows].unsqueeze(1)
            if loss == "wrong":  # |z - right| for zeros and ones, with a gradient everywhere
                return (z * (1 - 2 * right) + right).flatten(2).sum(-1)
            if loss == "overlap":
                shared = (z * right).flatten(2).sum(-1)
                return 1 - shared / ((z + right).flatten(2).sum(-1) - shared)
            if loss == "totals":
                return ((z - right).flatten(2) @ sums).square().mean(-1)
            return sign * (price * (z - right)).flatten(2).sum(-1)

        def regret_percent(z: Tensor, rows: Tensor) -> float:
            excess = (z - best[rows]) * true[rows]
            return 100 * sign * (excess.sum() / (best[rows] * true[rows]).sum()).item()

        measure = None if loss in ("overlap", "totals") else regret_percent
        return Model(solver, predict, TRAINING, TEST, scores, losses, measure)

    return build


def task_of(
    name: str,
    title: str,
    recipe: Recipe,
    ones: float,
    more: tuple[str, ...],
    metric: str,
    data: str = "generated",
) -> PythonTask:
    """A task with the methods of every structure and some more."""
    return PythonTask(
        name=f"{name}-s{recipe.samples}",
        title=f"{title}, S = {recipe.samples}",
        metric=metric,
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


_OF_DIGITS: dict[str, tuple[Callable[[int], Model], str, tuple[str, ...]]] = {
    "experts": (experts, "1 of {} experts", OF_ARGMAX),
    "bits": (lambda count: code(aimle.Bernoulli(), (count,)), "{} bits", ("sst",)),
    "pixels": (pixels, "{} of 64 pixels", ("sst",)),
}


def digits_task(kind: str, count: int, samples: int) -> PythonTask:
    """A choice of parts of a network on the digits, of a kind above."""
    build, title, more = _OF_DIGITS[kind]
    recipe = Recipe(functools.partial(build, count), samples=samples)
    ones = {"experts": 1, "bits": count / 2}.get(kind, count)
    metric = "test_bce" if kind == "bits" else "test_accuracy"
    methods = ("thresholds", "exact", *more)
    return task_of(f"{kind}-{count}", title.format(count), recipe, ones, methods, metric, DIGITS)


class Structure(NamedTuple):
    """A solver, the shape of its scores, and about how many ones a solution has."""

    title: str
    solver: aimle.Solver
    shape: tuple[int, ...]
    ones: float
    link: Callable[[Tensor], Tensor] = _same
    more: tuple[str, ...] = ("thresholds", "exact", "sst")


def decision_task(name: str, found: Structure, loss: str, samples: int = 1) -> PythonTask:
    """A prediction of the structure's scores, trained with this loss of `decision`."""
    build = decision(found.solver, found.shape, loss, found.link)
    recipe = Recipe(build, samples=samples, learning_rate=1e-2)
    words = {"wrong": "wrong entries", "regret": "regret as the loss"}.get(loss, loss)
    linear = loss in ("wrong", "regret")
    # Relaxations are left out if the loss is linear.
    more = tuple(each for each in found.more if each not in ("sst", "gumbel_softmax") or not linear)
    metric = "regret_percent" if linear else "test_loss"
    title = f"{found.title[0].upper()}{found.title[1:]}, {words}"
    return task_of(f"{name}-{loss}", title, recipe, found.ones, (*more, "identity"), metric)


def _structure(kind: str, n: int) -> Structure:
    if kind == "tree":
        edges = n * (n - 1) // 2
        return Structure(f"Trees of {n} vertices", aimle.SpanningTree(n), (edges,), n - 1)
    if kind == "tags":
        tags = (n + 1) // 2
        return Structure(f"Sequences of tags, {n} steps", aimle.Chain(), (n, tags, tags), n)
    if kind == "path":
        title, softplus = f"Paths over {n} × {n} cells", functional.softplus
        return Structure(title, aimle.GridPath(), (n, n), n + 1, softplus, ())
    if kind == "packing":
        weights = [3, 5, 2, 7, 4, 6, 3, 8, 5, 4, 2, 6, 4, 5, 3, 6][:n]
        knapsack = aimle.Knapsack(weights, capacity=sum(weights) * 4 // 11)
        return Structure(f"Packing {n} items", knapsack, (n,), n / 2, more=())
    return Structure(f"Matching {n} to {n}", aimle.Assignment(), (n, n), n, more=())


_SIZES = {
    "experts": (8, 4, 16),
    "bits": (24, 12, 40),
    "pixels": (10, 5, 20),
    "tree": (7, 5, 9),
    "tags": (7, 5, 9),
    "path": (7, 5, 10),
    "packing": (12, 8, 16),
    "matching": (6, 4, 8),
}


def _tasks() -> Iterator[PythonTask]:
    for kind, sizes in _SIZES.items():
        for size in sizes:
            if kind in _OF_DIGITS:
                yield from (digits_task(kind, size, samples) for samples in (1, 10))
            else:
                found = _structure(kind, size)
                yield from (
                    decision_task(f"{kind}-{size}", found, loss) for loss in ("wrong", "regret")
                )


TASKS: dict[str, Task] = {task.name: task for task in _tasks()}
