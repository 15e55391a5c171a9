"""Small tasks that test the rule of `aimle.diagnose`, defined after it was written.

Three sets, each chosen before any of its tasks was trained. The first one led to a change of the
rule, so only the second and the third are still held out. They have structures, losses, data, sizes
and numbers of samples that the tasks of small_tasks.py do not have. The networks on digits are

    experts, bits, pixels   as in small_tasks.py
    code      an image encoded as a structure, and decoded from it
    route     a classifier of the pixels on a path through the image

and on other data

    features  k of 30 measurements for a classifier (scikit-learn's breast cancer data)
    wine      k of 13 measurements for a classifier (scikit-learn's wine data)
    diabetes  k of 10 measurements for a regression (scikit-learn's diabetes data)
    order     n items to be sorted by predicted values; the loss is the squared error of the values

The others are decisions with linear or other losses, as in small_tasks.py.
"""

import functools
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

import aimle
from aimle.program.benchmark import digits
from aimle.program.benchmark.models import Model, Recipe
from aimle.program.benchmark.small_tasks import (
    DIGITS,
    FEATURES,
    OF_ARGMAX,
    TEST,
    TRAINING,
    Structure,
    classifier,
    code,
    decision_task,
    digits_task,
    network,
    task_of,
)
from aimle.program.benchmark.task import PythonTask, Task

_DATA_SEED = 11


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


def _structure(name: str) -> Structure:
    """Of a name such as tree-6 or subset-4-16."""
    kind, *numbers = name.split("-")
    n = int(numbers[0])
    more: tuple[str, ...] = ("exact", "sst")
    if kind == "pick":
        more = ("thresholds", "exact", *OF_ARGMAX)
        return Structure(f"1 of {n}", aimle.Argmax(), (n,), 1, more=more)
    if kind == "subset":
        of = int(numbers[1])
        return Structure(f"{n} of {of}", aimle.TopK(n), (of,), n)
    if kind == "tree":
        size = n * (n - 1) // 2
        return Structure(f"trees of {n} vertices", aimle.SpanningTree(n), (size,), n - 1)
    if kind == "heads":
        title = f"directed trees of {n} vertices"
        return Structure(title, aimle.Arborescence(n), (n, n), n, more=more)
    if kind == "tags":
        of = int(numbers[1])
        return Structure(f"{n + 1} tags of {of}", aimle.Chain(), (n, of, of), n)
    if kind == "align":
        return Structure(f"alignments of {n} to {n}", aimle.LatticePath(), (n, n), 1.5 * n)
    if kind == "moves":
        return Structure(f"edits of {n} to {n}", aimle.LatticeMoves(), (n, n, 3), 1.5 * n)
    if kind == "dag":
        edges = _edges(n, diagonal=True)
        dag = aimle.DagPath(edges, source=0, target=n * n - 1)
        title = f"paths over a {n} × {n} DAG"
        return Structure(title, dag, (len(edges),), 1.5 * n, more=more)
    if kind == "packing":
        weights = [2 + (5 * item) % 7 for item in range(n)]
        knapsack = aimle.Knapsack(weights, capacity=sum(weights) // 3)
        return Structure(f"packings of {n} items", knapsack, (n,), n / 2, more=more)
    if kind == "matching":
        title = f"matchings of {n} to {n}"
        return Structure(title, aimle.Assignment(), (n, n), n, more=())
    softplus = functional.softplus
    if kind == "graph":
        edges = _edges(n)
        graph = aimle.GraphPath(edges, source=n - 1, target=n * n - n, directed=False)
        title = f"paths over a {n} × {n} graph"
        return Structure(title, graph, (len(edges),), 2 * n, softplus, ())
    title = f"paths over {n} × {n} cells"
    return Structure(title, aimle.GridPath(), (n, n), n + 1, softplus, ())


def _code(name: str, samples: int) -> PythonTask:
    found = _structure(name)
    recipe = Recipe(functools.partial(code, found.solver, found.shape, found.link), samples=samples)
    title = f"Codes: {found.title}"
    return task_of(f"code-{name}", title, recipe, found.ones, found.more, "test_bce", DIGITS)


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
    return task_of("route-8", "Pixels on a path", recipe, 15, (), "test_accuracy", DIGITS)


class _Measured(NamedTuple):
    """A data set of scikit-learn: the first `training` examples, in a fixed order, are trained."""

    data: str
    loader: str
    training: int
    measurements: int
    classes: int  # 0: a number


_MEASURED = {
    "features": _Measured("scikit-learn's breast cancer", "load_breast_cancer", 400, 30, 2),
    "wine": _Measured("scikit-learn's wine", "load_wine", 120, 13, 3),
    "diabetes": _Measured("scikit-learn's diabetes", "load_diabetes", 300, 10, 0),
}


def _standardised(x: Tensor) -> Tensor:
    return (x - x.mean(0)) / x.std(0)


@functools.cache
def _examples(loader: str) -> tuple[Tensor, Tensor]:
    from sklearn import datasets

    inputs, labels = getattr(datasets, loader)(return_X_y=True)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(_DATA_SEED))
    x = torch.tensor(inputs, dtype=torch.float32)[order]
    return _standardised(x), torch.tensor(labels)[order]


def _of_measurements(of: _Measured, count: int) -> Model:
    solver, size = aimle.TopK(count), of.measurements
    score, rest = network(size, 32, size), network(size, 32, of.classes or 1)
    data = _examples(of.loader)

    def output(z: Tensor, x: Tensor) -> Tensor:
        return rest(z * x.unsqueeze(1))

    if of.classes:
        return classifier(solver, score, rest, output, data, of.training)
    inputs, numbers = data[0], _standardised(data[1].float())

    def losses(z: Tensor, rows: Tensor) -> Tensor:
        return (output(z, inputs[rows]).squeeze(-1) - numbers[rows].unsqueeze(1)).square()

    networks, tests = nn.ModuleList([score, rest]), len(numbers) - of.training
    return Model(solver, networks, of.training, tests, lambda rows: score(inputs[rows]), losses)


def _measurements(name: str, count: int, samples: int) -> PythonTask:
    of = _MEASURED[name]
    recipe = Recipe(functools.partial(_of_measurements, of, count), samples=samples)
    title = f"{count} of {of.measurements} measurements"
    metric = "test_accuracy" if of.classes else "test_loss"
    more = ("thresholds", "exact", "sst")
    return task_of(f"{name}-{count}", title, recipe, count, more, metric, of.data)


def _of_order(items: int) -> Model:
    fixed = torch.Generator().manual_seed(_DATA_SEED)
    features = torch.randn(TRAINING + TEST, items, FEATURES, generator=fixed)
    mixing = torch.randn(FEATURES, generator=fixed) / FEATURES**0.5
    values = (1 + 0.5 * features @ mixing).pow(3)
    ranked = values.sort(-1).values
    positions = torch.linspace(-1, 1, items)
    solver, predict = aimle.Assignment(), network(FEATURES, 16, 1)

    def scores(rows: Tensor) -> Tensor:
        return predict(features[rows]) * positions

    def losses(z: Tensor, rows: Tensor) -> Tensor:
        placed = torch.einsum("bsij,bi->bsj", z, values[rows])
        return (placed - ranked[rows].unsqueeze(1)).square().mean(-1)

    return Model(solver, predict, TRAINING, TEST, scores, losses)


def _order(items: int, samples: int) -> PythonTask:
    recipe = Recipe(functools.partial(_of_order, items), samples=samples, learning_rate=1e-2)
    return task_of(f"order-{items}", f"Sorting {items} items", recipe, items, (), "test_loss")


_DECISIONS = ("wrong", "regret", "totals", "overlap")


def _task(name: str) -> PythonTask:
    """Of a name such as experts-6-s4, code-tree-6-s1 or tree-6-wrong-s4, S = 4."""
    name, _, samples = name.rpartition("-s")
    kind, _, rest = name.partition("-")
    s = int(samples)
    if kind == "code":
        return _code(rest, s)
    if name.endswith(_DECISIONS):
        structure, _, loss = name.rpartition("-")
        return decision_task(structure, _structure(structure), loss, s)
    if kind == "route":
        return _route(s)
    if kind == "order":
        return _order(int(rest), s)
    return (_measurements if kind in _MEASURED else digits_task)(kind, int(rest), s)


def _tasks(names: str) -> dict[str, Task]:
    return {name: _task(name) for name in names.split()}


FIRST = _tasks("""
    experts-6-s4 pixels-15-s4 bits-32-s4 code-pick-24-s1 code-subset-6-24-s1 code-tree-6-s1
    code-tags-6-3-s10 code-packing-18-s4 code-matching-5-s1 code-heads-5-s4 code-align-6-s1
    features-4-s1 order-5-s1 pick-12-regret-s1 subset-5-20-wrong-s4 tree-6-wrong-s4
    tree-6-overlap-s1 heads-6-wrong-s1 heads-6-overlap-s4 tags-6-4-totals-s1 align-6-regret-s1
    align-6-totals-s10 dag-4-wrong-s4 packing-14-regret-s10 packing-14-overlap-s4
    matching-5-totals-s1 graph-4-regret-s1 path-8-wrong-s4 path-8-overlap-s4 route-8-s1
""")
SECOND = _tasks("""
    experts-10-s1 pixels-30-s1 bits-18-s1 code-pick-12-s4 code-subset-4-16-s10 code-tree-8-s4
    code-tags-4-4-s1 code-packing-12-s1 code-matching-6-s4 code-heads-6-s1 code-dag-4-s4
    features-6-s10 order-7-s4 pick-8-wrong-s4 pick-16-totals-s1 subset-3-15-regret-s1
    subset-6-18-totals-s4 tree-8-totals-s4 heads-8-regret-s4 tags-8-3-wrong-s10 align-8-wrong-s1
    moves-5-regret-s4 dag-5-totals-s1 packing-10-totals-s1 matching-7-regret-s10
    matching-7-overlap-s4 graph-5-overlap-s4 path-6-regret-s10 path-6-totals-s1 route-8-s4
""")
THIRD = _tasks("""
    experts-5-s10 experts-12-s4 pixels-8-s4 pixels-12-s1 pixels-25-s10 bits-16-s4 bits-20-s10
    bits-28-s1 code-pick-6-s1 code-pick-16-s10 code-pick-32-s4 code-subset-3-12-s1
    code-subset-5-10-s10 code-subset-8-32-s4 code-tree-5-s10 code-tree-7-s1 code-tags-3-5-s10
    code-tags-5-3-s4 code-packing-15-s10 code-packing-20-s1 code-matching-4-s10 code-heads-4-s10
    code-heads-7-s4 code-align-5-s4 code-align-8-s10 code-moves-4-s1 code-moves-5-s10
    code-dag-5-s1 features-3-s4 features-8-s1 wine-3-s1 wine-5-s10 diabetes-3-s4 diabetes-4-s1
    order-4-s10 order-6-s1 order-8-s1 pick-10-totals-s4 pick-24-regret-s10
    subset-4-12-overlap-s1 subset-5-25-totals-s10 subset-7-21-wrong-s1 tree-5-overlap-s4
    tree-7-totals-s10 heads-5-totals-s1 heads-7-wrong-s10 tags-4-5-totals-s4 tags-5-4-overlap-s1
    tags-6-3-regret-s4 align-5-overlap-s4 align-7-regret-s10 moves-4-wrong-s1 moves-6-totals-s4
    dag-3-regret-s10 dag-4-overlap-s1 packing-12-overlap-s10 packing-15-wrong-s4
    matching-4-overlap-s1 matching-6-totals-s4 graph-3-wrong-s4 graph-4-totals-s10
    path-5-overlap-s1 path-7-totals-s10 path-9-regret-s4
""")
TASKS: dict[str, Task] = {**FIRST, **SECOND, **THIRD}
