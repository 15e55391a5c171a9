"""PyEPO's shortest path and knapsack: a linear model predicts costs, OR-Tools solves.

Data, models and the layers to compare with are PyEPO's. All methods have the same budget of solver
calls, the same batches and the same optimiser; the cost of a step determines how many steps they
make. The losses are the L1 distance to the optimal solution, and the regret: the cost of the
solution minus the optimum. The metric is the regret on test examples, noise-free, in per cent of
the optimal costs.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import aimle
from aimle.estimate.texts import python_settings
from aimle.program.benchmark.models import Probe

SAMPLES = 3
CALLS = 4800
QUICK_CALLS = 240
BATCH = 20
FEATURES, DEGREE, NOISE_WIDTH = 5, 4, 0.5
TRAINING_EXAMPLES, TEST_EXAMPLES, QUICK_TEST_EXAMPLES = 200, 300, 20
_KAPPA = 5  # of PyEPO's Sum-of-Gamma noise
_STEPS_BEFORE_DIAGNOSIS, _DIAGNOSED_EXAMPLES = 10, 4  # training takes 27 steps, and solves are slow


@dataclass(frozen=True)
class Problem:
    """An optimisation model of PyEPO with training and test examples."""

    model: Any
    features: Tensor
    costs: Tensor
    solutions: Tensor
    sense: str

    @property
    def sign(self) -> int:
        return 1 if self.sense == "min" else -1

    def regret(self, solutions: Tensor, rows: Tensor) -> Tensor:
        """The cost of these solutions of the examples `rows` minus the optimum."""
        excess = (solutions - self.solutions[rows]) * self.costs[rows]
        return self.sign * excess.sum(-1)

    def regret_percent(self, solutions: Tensor, rows: Tensor) -> float:
        """The sum of their regrets in per cent of the sum of the optimal costs."""
        optimum = (self.solutions[rows] * self.costs[rows]).sum()
        return 100.0 * (self.regret(solutions, rows).sum() / optimum).item()


class CountedSolver:
    """Solves rows of costs one by one with a model of PyEPO; counts every solve of the model."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.calls = 0
        self._solve = type(model).solve
        model.solve = self._counted  # PyEPO's own layers call this one

    def _counted(self) -> tuple[Any, float]:
        self.calls += 1
        return self._solve(self.model)

    def __call__(self, costs: Tensor) -> Tensor:
        solutions = []
        for row in costs.detach().cpu().numpy():
            self.model.setObj(row)
            solutions.append(np.asarray(self.model.solve()[0], dtype=np.float32))
        return torch.from_numpy(np.stack(solutions)).to(costs)


@functools.lru_cache(maxsize=4)
def _shortest_path(seed: int) -> Problem:
    import pyepo.data.shortestpath
    from pyepo.model.ort import shortestPathModel

    grid = (5, 5)
    features, costs = pyepo.data.shortestpath.genData(
        TRAINING_EXAMPLES + TEST_EXAMPLES, FEATURES, grid, DEGREE, NOISE_WIDTH, seed
    )
    return _problem(shortestPathModel(grid), features, costs, "min")


@functools.lru_cache(maxsize=4)
def _knapsack(seed: int) -> Problem:
    import pyepo.data.knapsack
    from pyepo.model.ort import knapsackModel

    weights, features, costs = pyepo.data.knapsack.genData(
        TRAINING_EXAMPLES + TEST_EXAMPLES, FEATURES, 16, 2, DEGREE, NOISE_WIDTH, seed
    )
    return _problem(knapsackModel(weights=weights, capacity=[20, 20]), features, costs, "max")


def _problem(model: Any, features: np.ndarray, costs: np.ndarray, sense: str) -> Problem:
    costs_of = torch.tensor(costs, dtype=torch.float32)
    return Problem(
        model=model,
        features=torch.tensor(features, dtype=torch.float32),
        costs=costs_of,
        solutions=CountedSolver(model)(costs_of),
        sense=sense,
    )


def _layer(
    estimator: str, settings: dict[str, Any], solver: CountedSolver, sense: str, seed: int
) -> nn.Module:
    """PyEPO's layer of this name, or ours with the same noise, samples and difference."""
    if estimator.startswith("pyepo"):
        import pyepo.func
        from pyepo.func.utils import sumGammaDistribution

        common: dict[str, Any] = {
            "n_samples": SAMPLES,
            "distribution": sumGammaDistribution(kappa=_KAPPA, seed=seed),
        }
        if estimator == "pyepo_imle":
            return pyepo.func.implicitMLE(solver.model, lambd=settings["lambda_"], **common)
        two_sides = estimator == "pyepo_aimle_two_sided"
        return pyepo.func.adaptiveImplicitMLE(solver.model, two_sides=two_sides, **common)
    settings = {"sense": sense, "output": "mean", **settings}
    if estimator != "identity":
        settings = {"noise": aimle.SumOfGamma(k=_KAPPA), "nb_samples": SAMPLES, **settings}
    if estimator in ("aimle", "aimle_noise"):
        settings.setdefault("symmetric_perturbation", False)
    return aimle.estimator(estimator, solver, **settings)


@dataclass(frozen=True)
class Training:
    """How a problem is trained: its data, its loss and the learning rate of Adam."""

    problem: Callable[[int], Problem]
    loss: str
    learning_rate: float

    def __call__(
        self, estimator: str, settings: dict[str, str], seed: int, quick: bool
    ) -> tuple[float, int, int]:
        """Regret on the test examples in per cent, steps, and solver calls in training."""
        problem = self.problem(seed)
        solver = CountedSolver(problem.model)
        torch.manual_seed(seed)
        model = nn.Linear(FEATURES, problem.costs.shape[1])
        layer = _layer(estimator, python_settings(settings), solver, problem.sense, seed)
        optimiser = torch.optim.Adam(model.parameters(), lr=self.learning_rate)
        order = torch.Generator().manual_seed(seed)
        budget, steps, step_calls = QUICK_CALLS if quick else CALLS, 0, 0
        while solver.calls + step_calls <= budget:
            before = solver.calls
            rows = torch.randperm(TRAINING_EXAMPLES, generator=order)[:BATCH]
            optimiser.zero_grad()
            self._loss(problem, layer(model(problem.features[rows])), rows).backward()
            optimiser.step()
            steps, step_calls = steps + 1, max(step_calls, solver.calls - before)
        calls = solver.calls
        count = QUICK_TEST_EXAMPLES if quick else TEST_EXAMPLES
        test = torch.arange(TRAINING_EXAMPLES, TRAINING_EXAMPLES + count)
        with torch.no_grad():
            solutions = solver(model(problem.features[test]))
        return problem.regret_percent(solutions, test), steps, calls

    def probe(self, seed: int) -> Probe:
        """The model after a short training with the default, each sample with its own loss."""
        problem = self.problem(seed)
        torch.manual_seed(seed)
        model = nn.Linear(FEATURES, problem.costs.shape[1])
        settings = {"output": "samples"}
        layer = _layer("aimle", settings, CountedSolver(problem.model), problem.sense, seed)
        optimiser = torch.optim.Adam(model.parameters(), lr=self.learning_rate)

        def losses(z: Tensor, rows: Tensor) -> Tensor:
            wrong = z - problem.solutions[rows].unsqueeze(1)
            if self.loss == "l1":
                return wrong.abs().mean(-1)
            return problem.sign * (wrong * problem.costs[rows].unsqueeze(1)).sum(-1)

        for _ in range(_STEPS_BEFORE_DIAGNOSIS):
            rows = torch.randperm(TRAINING_EXAMPLES)[:BATCH]
            optimiser.zero_grad()
            losses(layer(model(problem.features[rows])), rows).mean().backward()
            optimiser.step()
        few = torch.arange(_DIAGNOSED_EXAMPLES)
        theta = model(problem.features[few]).detach()
        return Probe(layer, theta, lambda z: losses(z, few))

    def _loss(self, problem: Problem, solutions: Tensor, rows: Tensor) -> Tensor:
        if self.loss == "l1":
            return nn.functional.l1_loss(solutions, problem.solutions[rows])
        return problem.regret(solutions, rows).mean()


#: By problem and loss.
TRAINING = {
    (name, loss): Training(problem, loss, learning_rate)
    for name, problem, learning_rate in (
        ("shortest-path", _shortest_path, 0.01),
        ("knapsack", _knapsack, 0.1),
    )
    for loss in ("l1", "regret")
}
