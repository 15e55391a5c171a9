"""PyEPO's methods compared with ours on PyEPO's problems, with equal numbers of solver calls.

    python benchmarks/pyepo_comparison.py [--calls 4800] [--seeds 3] [--steps]

Data and models are PyEPO's: shortest path over a 5 x 5 grid, and a knapsack of 16 items with one
budget. A linear model predicts costs; the loss is the mean regret, except for SPO+ and PFY (the
perturbed Fenchel-Young loss), which are losses themselves. Every method has the same number of
solver calls; ours are run three times: PyEPO's model through ``aimle.from_pyepo``, the native
solver for as many steps, and the native solver until it first reaches PyEPO's final regret, which
is compared with the time at which PyEPO first reached it.

Prints the regret on test examples, in per cent of the optimal objective with its standard error
over seeds, and the seconds of training without checks: CPU time of the single thread, which is
wall-clock time on an idle machine. With --steps it prints the median time of a step with native
solvers instead, and that of a step whose layer only multiplies. Needs `pip install aimle[pyepo]`.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import aimle

FEATURES, DEGREE, NOISE_WIDTH = 5, 4, 0.5
TRAINING, TEST, BATCH = 200, 500, 20
SAMPLES, KAPPA, LAMBDA = 3, 5, 10.0
AS_LOW = "native, until as low as PyEPO"
METHODS = ("DBB", "IMLE", "AIMLE", "PFY", "SPO+")


@dataclass(frozen=True)
class Problem:
    """A model of PyEPO, the native solver of the same instances, and examples."""

    name: str
    model: Any
    native: Any
    sense: str
    learning_rate: float
    features: Tensor
    costs: Tensor

    @cached_property
    def best(self) -> Tensor:
        """The best solutions of all examples."""
        return self.solve(self.costs)

    def solve(self, costs: Tensor) -> Tensor:
        """The best solutions, by the native solver."""
        return self.native(costs if self.native.sense == self.sense else -costs)

    def regret(self, z: Tensor, rows: Tensor) -> Tensor:
        """The loss of solutions of these examples compared with the best ones."""
        sign = 1 if self.sense == "min" else -1
        return sign * ((z - self.best[rows]) * self.costs[rows]).sum(-1)


def shortest_path(seed: int) -> Problem:
    import pyepo.data.shortestpath
    from pyepo.model.ort import shortestPathModel

    model = shortestPathModel((5, 5))
    data = pyepo.data.shortestpath.genData(
        TRAINING + TEST, FEATURES, (5, 5), DEGREE, NOISE_WIDTH, seed
    )
    features, costs = (torch.tensor(each, dtype=torch.float32) for each in data)
    native = aimle.DagPath([tuple(arc) for arc in model.arcs], 0, 24)
    return Problem("shortest path 5 × 5", model, native, "min", 0.01, features, costs)


def knapsack(seed: int) -> Problem:
    import pyepo.data.knapsack
    from pyepo.model.ort import knapsackModel

    weights, *data = pyepo.data.knapsack.genData(
        TRAINING + TEST, FEATURES, 16, 1, DEGREE, NOISE_WIDTH, seed
    )
    features, costs = (torch.tensor(each, dtype=torch.float32) for each in data)
    native = aimle.Knapsack(np.asarray(weights)[0].tolist(), 20, scale=100)
    model = knapsackModel(weights=weights, capacity=[20])
    return Problem("knapsack of 16 items", model, native, "max", 0.1, features, costs)


@dataclass
class Run:
    """A training: steps, solver calls, and after every step the seconds and the regret."""

    steps: int = 0
    calls: int = 0
    seconds: list[float] = field(default_factory=list)
    regrets: list[float] = field(default_factory=list)

    def reaches(self, regret: float) -> float | None:
        """The seconds after which the regret was as low."""
        return next(
            (s for s, r in zip(self.seconds, self.regrets, strict=True) if r <= regret), None
        )


class Counting:
    """A model of PyEPO that counts its solves."""

    def __init__(self, model: Any) -> None:
        self.calls, solve = 0, type(model).solve

        def counted() -> Any:
            self.calls += 1
            return solve(model)

        model.solve = counted


def train(
    problem: Problem,
    loss: Callable[[Tensor, Tensor], Tensor],
    seed: int,
    calls: Callable[[], int],
    go_on: Callable[[Run], bool],
) -> Run:
    """Adam on batches while `go_on`; loss(predicted costs, rows). Checks are not timed."""
    torch.manual_seed(seed)
    model = nn.Linear(FEATURES, problem.costs.shape[1])
    optimiser = torch.optim.Adam(model.parameters(), lr=problem.learning_rate, fused=True)
    order = torch.Generator().manual_seed(seed)
    test = torch.arange(TRAINING, TRAINING + TEST)
    optimum = (problem.best[test] * problem.costs[test]).sum()
    run, seconds = Run(), 0.0
    while go_on(run):
        rows = torch.randperm(TRAINING, generator=order)[:BATCH]
        start = time.process_time()
        optimiser.zero_grad()
        loss(model(problem.features[rows]), rows).backward()
        optimiser.step()
        seconds += time.process_time() - start
        run.steps, run.calls = run.steps + 1, calls()
        with torch.no_grad():
            z = problem.solve(model(problem.features[test]))
        run.seconds.append(seconds)
        run.regrets.append(100 * float(problem.regret(z, test).sum() / optimum))
    return run


def theirs(method: str, problem: Problem, seed: int) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss of predicted costs with PyEPO's method."""
    import pyepo.func
    from pyepo.func.utils import sumGammaDistribution

    noise = {"n_samples": SAMPLES, "distribution": sumGammaDistribution(kappa=KAPPA, seed=seed)}
    if method == "SPO+":
        spo, costs, best = pyepo.func.SPOPlus(problem.model), problem.costs, problem.best
        values = (best * costs).sum(-1, keepdim=True)
        return lambda predicted, rows: spo(predicted, costs[rows], best[rows], values[rows])
    if method == "PFY":
        young = pyepo.func.perturbedFenchelYoung(problem.model, n_samples=SAMPLES, seed=seed)
        return lambda predicted, rows: young(predicted, problem.best[rows])
    layer = {
        "DBB": lambda: pyepo.func.blackboxOpt(problem.model, lambd=LAMBDA),
        "IMLE": lambda: pyepo.func.implicitMLE(problem.model, lambd=LAMBDA, **noise),
        "AIMLE": lambda: pyepo.func.adaptiveImplicitMLE(problem.model, **noise),
    }[method]()
    return lambda predicted, rows: problem.regret(layer(predicted), rows).mean()


def ours(method: str, problem: Problem, solver: Any) -> Callable[[Tensor, Tensor], Tensor]:
    """The same with a layer of ours: the same noise, samples and difference."""
    noise = {"noise": aimle.SumOfGamma(KAPPA), "nb_samples": SAMPLES, "temperature": 1.0}
    told: dict[str, Any] = {"sense": problem.sense, "output": "mean"}
    if method == "PFY":
        young = functools.partial(
            aimle.perturbed_fenchel_young_loss,
            solver=solver,
            nb_samples=SAMPLES,
            sense=problem.sense,
        )
        return lambda predicted, rows: young(predicted, problem.best[rows]).mean()
    if method == "SPO+":
        spo = functools.partial(aimle.spo_plus_loss, solver=solver, sense=problem.sense)
        costs, best = problem.costs, problem.best
        return lambda predicted, rows: spo(predicted, costs[rows], solution=best[rows]).mean()
    layer = {
        "DBB": lambda: aimle.DBB(solver, LAMBDA, **told),
        "IMLE": lambda: aimle.IMLE(solver, LAMBDA, **noise, **told),
        "AIMLE": lambda: aimle.AIMLE(solver, symmetric_perturbation=False, **noise, **told),
    }[method]()
    return lambda predicted, rows: problem.regret(layer(predicted), rows).mean()


def compare(problem: Problem, method: str, budget: int, seed: int) -> dict[str, Run]:
    """The runs of one seed."""
    counting = Counting(problem.model)

    def within(run: Run) -> bool:
        return run.calls + (run.calls / run.steps if run.steps else 0) <= budget

    def seconds_of(loss: Callable[[Tensor, Tensor], Tensor], go_on: Callable[[Run], bool]) -> Run:
        before = counting.calls
        return train(problem, loss, seed, lambda: counting.calls - before, go_on)

    runs = {"PyEPO": seconds_of(theirs(method, problem, seed), within)}
    wrapped = aimle.from_pyepo(problem.model)
    runs["from_pyepo"] = seconds_of(ours(method, problem, wrapped), within)
    steps = runs["from_pyepo"].steps
    runs["native"] = seconds_of(
        ours(method, problem, problem.native), lambda run: run.steps < steps
    )
    goal = runs["PyEPO"].regrets[-1]
    runs[AS_LOW] = seconds_of(
        ours(method, problem, problem.native),
        lambda run: run.steps < 20 * steps and run.reaches(goal) is None,
    )
    return runs


def print_steps(problem: Problem) -> None:
    """The time of a step: with our layers, and with a multiplication in their place."""

    def multiply(predicted: Tensor, rows: Tensor) -> Tensor:
        return problem.regret(2 * predicted, rows).mean()

    losses = {method: ours(method, problem, problem.native) for method in METHODS}
    for name, loss in {"multiplication": multiply, **losses}.items():
        seconds = train(problem, loss, 0, lambda: 0, lambda run: run.steps < 300).seconds
        median = float(np.median(np.diff(seconds)))
        print(f"| {problem.name} | {name} | {1e3 * median:.2f} ms |", flush=True)


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def cell(runs: list[Run]) -> str:
    """Regret and seconds, over seeds."""
    regrets = [run.regrets[-1] for run in runs]
    spread = float(np.std(regrets, ddof=1) / len(regrets) ** 0.5) if len(regrets) > 1 else 0.0
    return f"{mean(regrets):.1f} ± {spread:.1f}, {mean([run.seconds[-1] for run in runs]):.2g} s"


def report(problem: str, method: str, seeds: list[dict[str, Run]]) -> None:
    """A row of the table."""
    runs = {name: [each[name] for each in seeds] for name in seeds[0]}
    cells = [
        cell(runs[name]) if name in runs else "–" for name in ("PyEPO", "from_pyepo", "native")
    ]
    as_low = "–"
    if AS_LOW in runs:
        goals = [run.regrets[-1] for run in runs["PyEPO"]]
        reached = [
            [run.reaches(goal) for run, goal in zip(runs[name], goals, strict=True)]
            for name in ("PyEPO", AS_LOW)
        ]
        if None in reached[1]:
            as_low = f"reached by {len(goals) - reached[1].count(None)} of {len(goals)} seeds"
        else:
            theirs_, ours_ = (mean([s for s in each if s is not None]) for each in reached)
            as_low = f"{theirs_:.2g} s, {ours_:.2g} s: {theirs_ / ours_:.0f} times faster"
    print(f"| {problem} | {method} | {' | '.join(cells)} | {as_low} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=4800, help="of the solver, in each training")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--steps", action="store_true", help="time single steps instead")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.steps:
        for name in options.problems.split(","):
            print_steps(PROBLEMS[name](0))
        return
    print("| problem | method | PyEPO | `from_pyepo` | native | to PyEPO's regret: PyEPO, native |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in options.problems.split(","):
        for method in options.methods.split(","):
            seeds = []
            for seed in range(options.seeds):
                problem = PROBLEMS[name](seed)
                seeds.append(compare(problem, method, options.calls, seed))
            report(problem.name, method, seeds)


PROBLEMS = {"path": shortest_path, "knapsack": knapsack}

if __name__ == "__main__":
    main()
