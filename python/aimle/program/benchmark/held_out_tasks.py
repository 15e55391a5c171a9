"""Small tasks that test the rule of `aimle.diagnose`, defined after it was written.

Two sets, both chosen before any of them was trained. The first one led to a change of the rule, so
only the second one is still held out. They have structures, losses, sizes and
numbers of samples that the tasks of small_tasks.py do not have. The networks on digits are

    experts, bits, pixels   as in small_tasks.py
    code      an image encoded as a structure, and decoded from it
    route     a classifier of the pixels on a path through the image

and on other data

    features  k of 30 measurements for a classifier (scikit-learn's breast cancer data)
    order     n items to be sorted by predicted values; the loss is the squared error of the values

The others are decisions with linear or other losses, as in small_tasks.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

import aimle
from aimle.program.benchmark import digits, small_tasks
from aimle.program.benchmark.models import Model, Recipe
from aimle.program.benchmark.small_tasks import classifier, code, decision, network, task_of
from aimle.program.benchmark.task import PythonTask, Task

_DIGITS, _CANCER = "scikit-learn's digits", "scikit-learn's breast cancer"
_MEASUREMENTS, _PATIENTS = 30, 400
_FEATURES, _TRAINING, _TEST, _DATA_SEED = 6, 400, 300, 11


def _same(x: Tensor) -> Tensor:
    return x


def _edges(side: int, diagonal: bool = False) -> list[tuple[int, int]]:
    """Of a grid of side x side vertices, to the right and down, numbered by rows."""
    moves = [(0, 1), (1, 0), (1, 1)] if diagonal else [(0, 1), (1, 0)]
    return [
        (row * side + column, (row + down) * side + column + right)
        for row in range(side)
        for column in range(side)
        for down, right in moves
        if row + down < side and column + right < side
    ]


class _Structure(NamedTuple):
    """A solver, the shape of its scores, and about how many ones a solution has."""

    title: str
    solver: aimle.Solver
    shape: tuple[int, ...]
    ones: float
    link: Callable[[Tensor], Tensor] = _same
    more: tuple[str, ...] = ("thresholds", "exact", "sst")


_NO_THRESHOLDS = ("exact", "sst")


def _weights(items: int) -> list[int]:
    return [2 + (5 * item) % 7 for item in range(items)]


def _structure(name: str) -> _Structure:
    """Of a name such as tree-6 or subset-4-16."""
    kind, *numbers = name.split("-")
    n = int(numbers[0])
    if kind == "pick":
        more = ("thresholds", "exact", *small_tasks.OF_ARGMAX)
        return _Structure(f"1 of {n}", aimle.Argmax(), (n,), 1, more=more)
    if kind == "subset":
        of = int(numbers[1])
        return _Structure(f"{n} of {of}", aimle.TopK(n), (of,), n)
    if kind == "tree":
        size = n * (n - 1) // 2
        return _Structure(f"trees of {n} vertices", aimle.SpanningTree(n), (size,), n - 1)
    if kind == "heads":
        title, more = f"directed trees of {n} vertices", _NO_THRESHOLDS
        return _Structure(title, aimle.Arborescence(n), (n, n), n, more=more)
    if kind == "tags":
        of = int(numbers[1])
        return _Structure(f"{n + 1} tags of {of}", aimle.Chain(), (n, of, of), n)
    if kind == "align":
        return _Structure(f"alignments of {n} to {n}", aimle.LatticePath(), (n, n), 1.5 * n)
    if kind == "moves":
        return _Structure(f"edits of {n} to {n}", aimle.LatticeMoves(), (n, n, 3), 1.5 * n)
    if kind == "dag":
        edges = _edges(n, diagonal=True)
        solver = aimle.DagPath(edges, source=0, target=n * n - 1)
        title, more = f"paths over a {n} × {n} DAG", _NO_THRESHOLDS
        return _Structure(title, solver, (len(edges),), 1.5 * n, more=more)
    if kind == "packing":
        weights = _weights(n)
        solver = aimle.Knapsack(weights, capacity=sum(weights) // 3)
        return _Structure(f"packings of {n} items", solver, (n,), n / 2, more=_NO_THRESHOLDS)
    if kind == "matching":
        title = f"matchings of {n} to {n}"
        return _Structure(title, aimle.Assignment(), (n, n), n, more=())
    softplus = functional.softplus
    if kind == "graph":
        edges = _edges(n)
        ends = {"source": n - 1, "target": n * n - n}
        graph = aimle.GraphPath(edges, **ends, directed=False)
        title = f"paths over a {n} × {n} graph"
        return _Structure(title, graph, (len(edges),), 2 * n, softplus, ())
    title = f"paths over {n} × {n} cells"
    return _Structure(title, aimle.GridPath(), (n, n), n + 1, softplus, ())


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _code(name: str, samples: int) -> PythonTask:
    found = _structure(name)
    recipe = Recipe(functools.partial(code, found.solver, found.shape, found.link), samples=samples)
    title = f"Codes: {found.title}"
    return task_of(f"code-{name}", title, recipe, found.ones, found.more, "test_bce", _DIGITS)


def _decision(name: str, loss: str, samples: int) -> PythonTask:
    found = _structure(name)
    build = decision(found.solver, found.shape, loss, found.link)
    recipe = Recipe(build, samples=samples, learning_rate=1e-2)
    words = {"wrong": "wrong entries", "regret": "regret as the loss"}.get(loss, loss)
    linear = loss in ("wrong", "regret")
    # As for the decisions of small_tasks.py, relaxations are left out if the loss is linear.
    more = tuple(each for each in found.more if each not in ("sst", "gumbel_softmax") or not linear)
    metric = "regret_percent" if linear else "test_loss"
    title = f"{_capital(found.title)}, {words}"
    return task_of(f"{name}-{loss}", title, recipe, found.ones, (*more, "identity"), metric)


def _digits(kind: str, count: int, samples: int) -> PythonTask:
    build, title, more = {
        "experts": (small_tasks.experts, "1 of {} experts", small_tasks.OF_ARGMAX),
        "bits": (small_tasks.bits, "{} bits", ("sst",)),
        "pixels": (small_tasks.pixels, "{} of 64 pixels", ("sst",)),
    }[kind]
    recipe = Recipe(functools.partial(build, count), samples=samples)
    ones = {"experts": 1, "bits": count / 2}.get(kind, count)
    metric = "test_bce" if kind == "bits" else "test_accuracy"
    methods = ("thresholds", "exact", *more)
    return task_of(f"{kind}-{count}", title.format(count), recipe, ones, methods, metric, _DIGITS)


def _of_route() -> Model:
    score = nn.Sequential(
        network(digits.PIXELS, 64, digits.PIXELS), nn.Softplus(), nn.Unflatten(1, (8, 8))
    )
    classify = network(digits.PIXELS, 64, digits.CLASSES)
    return classifier(
        aimle.GridPath(neighbourhood=4),
        score,
        classify,
        lambda z, x: classify(z.flatten(2) * x.unsqueeze(1)),
    )


def _route(samples: int) -> PythonTask:
    recipe = Recipe(_of_route, samples=samples)
    return task_of("route-8", "Pixels on a path", recipe, 15, (), "test_accuracy", _DIGITS)


@functools.cache
def _patients() -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_breast_cancer

    inputs, labels = load_breast_cancer(return_X_y=True)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(_DATA_SEED))
    x = torch.tensor(inputs, dtype=torch.float32)[order]
    return (x - x.mean(0)) / x.std(0), torch.tensor(labels)[order]


def _of_features(count: int) -> Model:
    score = network(_MEASUREMENTS, 32, _MEASUREMENTS)
    classify = network(_MEASUREMENTS, 32, 2)
    return classifier(
        aimle.TopK(count),
        score,
        classify,
        lambda z, x: classify(z * x.unsqueeze(1)),
        _patients(),
        _PATIENTS,
    )


def _features(count: int, samples: int) -> PythonTask:
    recipe = Recipe(functools.partial(_of_features, count), samples=samples)
    title = f"{count} of {_MEASUREMENTS} measurements"
    more = ("thresholds", "exact", "sst")
    return task_of(f"features-{count}", title, recipe, count, more, "test_accuracy", _CANCER)


def _of_order(items: int) -> Model:
    fixed = torch.Generator().manual_seed(_DATA_SEED)
    features = torch.randn(_TRAINING + _TEST, items, _FEATURES, generator=fixed)
    mixing = torch.randn(_FEATURES, generator=fixed) / _FEATURES**0.5
    values = (1 + 0.5 * features @ mixing).pow(3)
    ranked = values.sort(-1).values
    positions = torch.linspace(-1, 1, items)
    solver, predict = aimle.Assignment(), network(_FEATURES, 16, 1)

    def scores(rows: Tensor) -> Tensor:
        return predict(features[rows]) * positions

    def losses(z: Tensor, rows: Tensor) -> Tensor:
        placed = torch.einsum("bsij,bi->bsj", z, values[rows])
        return (placed - ranked[rows].unsqueeze(1)).square().mean(-1)

    def measure() -> float:
        rows = torch.arange(_TRAINING, _TRAINING + _TEST)
        return losses(solver(scores(rows)).unsqueeze(1), rows).mean().item()

    return Model(solver, predict, _TRAINING, scores, losses, measure)


def _order(items: int, samples: int) -> PythonTask:
    recipe = Recipe(functools.partial(_of_order, items), samples=samples, learning_rate=1e-2)
    return task_of(f"order-{items}", f"Sorting {items} items", recipe, items, (), "test_loss")


def _first() -> Iterator[PythonTask]:
    yield _digits("experts", 6, 4)
    yield _digits("pixels", 15, 4)
    yield _digits("bits", 32, 4)
    yield _code("pick-24", 1)
    yield _code("subset-6-24", 1)
    yield _code("tree-6", 1)
    yield _code("tags-6-3", 10)
    yield _code("packing-18", 4)
    yield _code("matching-5", 1)
    yield _code("heads-5", 4)
    yield _code("align-6", 1)
    yield _features(4, 1)
    yield _order(5, 1)
    yield _decision("pick-12", "regret", 1)
    yield _decision("subset-5-20", "wrong", 4)
    yield _decision("tree-6", "wrong", 4)
    yield _decision("tree-6", "overlap", 1)
    yield _decision("heads-6", "wrong", 1)
    yield _decision("heads-6", "overlap", 4)
    yield _decision("tags-6-4", "totals", 1)
    yield _decision("align-6", "regret", 1)
    yield _decision("align-6", "totals", 10)
    yield _decision("dag-4", "wrong", 4)
    yield _decision("packing-14", "regret", 10)
    yield _decision("packing-14", "overlap", 4)
    yield _decision("matching-5", "totals", 1)
    yield _decision("graph-4", "regret", 1)
    yield _decision("path-8", "wrong", 4)
    yield _decision("path-8", "overlap", 4)
    yield _route(1)


def _second() -> Iterator[PythonTask]:
    yield _digits("experts", 10, 1)
    yield _digits("pixels", 30, 1)
    yield _digits("bits", 18, 1)
    yield _code("pick-12", 4)
    yield _code("subset-4-16", 10)
    yield _code("tree-8", 4)
    yield _code("tags-4-4", 1)
    yield _code("packing-12", 1)
    yield _code("matching-6", 4)
    yield _code("heads-6", 1)
    yield _code("dag-4", 4)
    yield _features(6, 10)
    yield _order(7, 4)
    yield _decision("pick-8", "wrong", 4)
    yield _decision("pick-16", "totals", 1)
    yield _decision("subset-3-15", "regret", 1)
    yield _decision("subset-6-18", "totals", 4)
    yield _decision("tree-8", "totals", 4)
    yield _decision("heads-8", "regret", 4)
    yield _decision("tags-8-3", "wrong", 10)
    yield _decision("align-8", "wrong", 1)
    yield _decision("moves-5", "regret", 4)
    yield _decision("dag-5", "totals", 1)
    yield _decision("packing-10", "totals", 1)
    yield _decision("matching-7", "regret", 10)
    yield _decision("matching-7", "overlap", 4)
    yield _decision("graph-5", "overlap", 4)
    yield _decision("path-6", "regret", 10)
    yield _decision("path-6", "totals", 1)
    yield _route(4)


FIRST: dict[str, Task] = {task.name: task for task in _first()}
SECOND: dict[str, Task] = {task.name: task for task in _second()}
TASKS: dict[str, Task] = {**FIRST, **SECOND}
