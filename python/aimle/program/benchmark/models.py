"""Small models over a solver: trained as tasks, and diagnosed with the library's default.

A model scores its examples, `losses` prices every sample of a solution, and `measure` is the metric
of the noise-free solutions of its test examples, by default their mean loss.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

import aimle
from aimle.estimate.texts import python_settings

#: Steps of the default before a diagnosis, so that theta is not its initial value.
STEPS_BEFORE_DIAGNOSIS = 100
DIAGNOSED_EXAMPLES = 16
_SOLVES = {"central": 3, "forward": 2, "straight_through": 1, "thresholds": 1}


def solves_of(layer: Any) -> int:
    """Solves per sample and training step; 0 for estimators without a solver."""
    return _SOLVES.get(getattr(layer, "difference", ""), 0)


@dataclass(frozen=True)
class Probe:
    """What `aimle.diagnose` needs: a layer, scores, and the loss of every sample."""

    layer: Any
    theta: Tensor
    loss: Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Model:
    """Networks around a solver, with their data; rows are indices of examples, training ones first.

    losses: z [B, S, *instance] and rows [B] -> [B, S].
    measure: solutions z [B, *instance] of the test examples, and their rows -> a metric.
    """

    solver: Any
    networks: nn.Module
    examples: int  # for training
    tests: int
    scores: Callable[[Tensor], Tensor]
    losses: Callable[[Tensor, Tensor], Tensor]
    measure: Callable[[Tensor, Tensor], float] | None = None

    def value(self) -> float:
        """The metric."""
        rows = torch.arange(self.examples, self.examples + self.tests)
        z = self.solver(self.scores(rows))
        if self.measure is not None:
            return self.measure(z, rows)
        return self.losses(z.unsqueeze(1), rows).mean().item()


@dataclass(frozen=True)
class Recipe:
    """How a model is built from a seed, and trained with Adam."""

    build: Callable[[], Model]
    samples: int = 1
    steps: int = 300
    quick_steps: int = 2
    batch: int = 32
    learning_rate: float = 1e-3
    #: Settings of the default layer in a diagnosis, for example its noise.
    layer: Mapping[str, Any] = field(default_factory=dict)

    def __call__(
        self, estimator: str, settings: dict[str, str], seed: int, quick: bool
    ) -> tuple[float, int, int]:
        """The metric, steps and solver calls, as `PythonTask.train`."""
        torch.manual_seed(seed)
        model = self.build()
        # `identity` has one sample, and returns the mean unless told otherwise.
        own = {"output": "samples"} if estimator == "identity" else {"nb_samples": self.samples}
        layer = aimle.estimator(estimator, model.solver, **{**own, **python_settings(settings)})
        steps = self.quick_steps if quick else self.steps
        self._train(model, layer, steps)
        with torch.no_grad():
            value = model.value()
        return value, steps, steps * self.batch * layer.nb_samples * solves_of(layer)

    def probe(self, seed: int) -> Probe:
        """The model as trained for a short time with the default."""
        torch.manual_seed(seed)
        model = self.build()
        layer = aimle.AIMLE(model.solver, nb_samples=self.samples, **self.layer)
        self._train(model, layer, STEPS_BEFORE_DIAGNOSIS)
        rows = torch.arange(DIAGNOSED_EXAMPLES)
        return Probe(layer, model.scores(rows).detach(), lambda z: model.losses(z, rows))

    def _train(self, model: Model, layer: nn.Module, steps: int) -> None:
        optimiser = torch.optim.Adam(model.networks.parameters(), lr=self.learning_rate)
        for _ in range(steps):
            rows = torch.randint(model.examples, (self.batch,))
            losses = model.losses(layer(model.scores(rows)), rows)
            optimiser.zero_grad()
            losses.sum(1).mean().backward()  # each sample has the gradient of its own loss
            optimiser.step()
