"""Measures every estimator that applies to a problem, and finds the true gradient first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from aimle.callable_solver.answers import may_be_fractional
from aimle.diagnosis.comparison import compare, warm_up
from aimle.diagnosis.contestants import YOURS, Contestant, contestants
from aimle.diagnosis.long_step import LongStep, long_step
from aimle.diagnosis.losses import LossRange, checked_loss
from aimle.diagnosis.result import Diagnosis
from aimle.diagnosis.truth import FEWEST_SAMPLES, Loss, Model, find_truth, model_of
from aimle.settings.checks import check_int, check_tensor, instance_dims_of
from aimle.solvers import Solver, check_solver


def diagnose(
    layer_or_solver: nn.Module | Solver | Callable[..., Tensor],
    theta: Tensor,
    loss_fn: Callable[[Tensor], Tensor],
    *,
    nb_samples: Sequence[int] | int = (1, 10),
    lambdas: Sequence[float] = (0.1, 1.0, 10.0),
    estimators: Sequence[str] | None = None,
    repeats: int = 20,
    warmup: int = 300,
    truth_samples: int = 20_000,
) -> Diagnosis:
    """Measures the estimators on a batch; see ``aimle.diagnosis``.

    Args:
        layer_or_solver: an estimator or a solver. An estimator is measured as "your layer" from its
            current state, and is not modified. All others use its solver in the layer's sense, with
            its noise and temperature. All are left out at numbers of samples that are too small for
            them.
        theta: [*batch, *instance].
        loss_fn: z [*batch, S, *instance] -> losses [*batch, S], one per sample.
        nb_samples: the numbers of samples S to measure, or one number.
        lambdas: fixed steps to try, in units of theta. They refer to a loss summed over samples.
        estimators: names from ``aimle.estimators()``, optionally with settings as on the command
            line (``sfe:baseline=leave_one_out``); None means all that apply.
        repeats: gradients per estimator, at least 2.
        warmup: backward passes that let adaptive estimators settle, at the first number of samples;
            a quarter of it at each further one.
        truth_samples: samples of the long run, if no exact gradient is available.
    """
    check_tensor("diagnose", "theta", theta)
    check_int("diagnose", "repeats", repeats, 2)
    check_int("diagnose", "warmup", warmup, 0)
    check_int("diagnose", "truth_samples", truth_samples, FEWEST_SAMPLES)
    yours = layer_or_solver if isinstance(layer_or_solver, nn.Module) else None
    solver = getattr(yours, "solver", None) if yours is not None else layer_or_solver
    if solver is None:
        raise TypeError(
            f"[aimle.diagnose] expected an estimator or a solver but got "
            f"{type(layer_or_solver).__name__}"
        )
    check_solver("diagnose", solver)
    solver, sign = _own_sense(solver, yours, theta)
    return measure(
        Problem(solver, model_of(yours, solver), sign * theta.detach(), loss_fn, yours, sign),
        nb_samples=(nb_samples,) if isinstance(nb_samples, int) else nb_samples,
        lambdas=lambdas,
        estimators=estimators,
        repeats=repeats,
        warmup=warmup,
        truth_samples=truth_samples,
    )


@dataclass(frozen=True)
class Problem:
    """The problem to diagnose: MAP(theta + noise of the model) under a loss.

    theta is in the solver's sense, and sign is -1 if that differs from the sense of `yours`.
    """

    solver: Any
    model: Model
    theta: Tensor
    loss_fn: Loss
    yours: nn.Module | None = None
    sign: float = 1.0

    @property
    def dims(self) -> int:
        return instance_dims_of(self.solver, self.theta)

    def scale(self, contestant: Contestant) -> float:
        """The factor on theta: the others get theta / tau, whose gradient is tau times theta's."""
        return self.sign if contestant.name == YOURS else 1.0 / self.model.temperature


#: Called with the diagnosis so far, the estimator measured last, and the total number.
Watch = Callable[[Diagnosis, str, int], None]


def measure(
    problem: Problem,
    *,
    nb_samples: Sequence[int],
    lambdas: Sequence[float],
    estimators: Sequence[str] | None,
    repeats: int,
    warmup: int,
    truth_samples: int,
    watch: Watch = lambda *_: None,
) -> Diagnosis:
    """The diagnosis of a problem: first the true gradient, then every estimator."""
    solver, model, yours = problem.solver, problem.model, problem.yours
    loss = checked_loss(problem.loss_fn, problem.theta, problem.dims)
    wants_imle = estimators is None or "imle" in estimators
    step = long_step(solver, model, problem.theta, loss) if wants_imle else None
    everybody: list[Contestant] = []
    for samples in nb_samples:
        check_int("diagnose", "nb_samples", samples, 1)
        everybody += contestants(solver, yours, model, samples, lambdas, estimators)
        if step is not None:
            everybody += contestants(solver, None, model, samples, [step.length], ["imle"])
    truth, found = _truth_of(problem, repeats, truth_samples, step)
    if step is not None:
        found.long_step, found.saturated = step
    watch(found, "the true gradient", len(everybody))
    settled: dict[str, dict[str, Tensor]] = {}
    for one in everybody:
        scale = problem.scale(one)
        theta = scale * problem.theta
        warm_up(one.name, one.layer, theta, loss, warmup, settled)
        error = found.truth_relative_se
        row = compare(one.layer, theta, loss, truth / scale, repeats, problem.dims, error)
        mean_step = row.pop("step")
        mean_step = None if mean_step is None else mean_step / abs(scale)
        fixed = one.fixed_lambda
        found.rows.append(
            {"estimator": one.name, "lambda": fixed if fixed is not None else mean_step}
            | {"fixed_lambda": fixed is not None, "samples": one.samples}
            | row
        )
        watch(found, one.name, len(everybody))
    return found


class SaturatedError(ValueError):
    """The noise changes no solution, so that the true gradient is zero; `step` is recommended."""

    def __init__(self, step: LongStep) -> None:
        self.step = step
        super().__init__(
            "[aimle.diagnose] the true gradient is zero: the scores are so large that the noise "
            f"changes no solution. Train with imle and lambda={step.length:.3g}, raise the "
            "temperature of the noise, or keep the scores small"
        )


def _truth_of(
    problem: Problem, repeats: int, samples: int, step: LongStep | None
) -> tuple[Tensor, Diagnosis]:
    """The true gradient and a diagnosis without rows; raises ValueError if it is zero."""
    solver, theta, loss_fn = problem.solver, problem.theta, problem.loss_fn
    losses = LossRange(checked_loss(getattr(loss_fn, "mean", loss_fn), theta, problem.dims))
    price = getattr(loss_fn, "price", None)
    truth, about, error = find_truth(solver, problem.model, theta, losses, samples, price)
    rounding = 0.0 if price is None else 1e-12 * float(price.norm())
    if losses.is_a_point() or not truth.norm() > rounding:
        if step is not None and step.saturated:
            raise SaturatedError(step)
        raise ValueError(
            "[aimle.diagnose] the true gradient is zero: the loss does not depend on the choice"
            + losses.description()
        )
    return truth, Diagnosis(
        structure=type(solver).__name__ if isinstance(solver, Solver) else "callable",
        shape=list(theta.shape),
        truth=about,
        truth_relative_se=error,
        repeats=repeats,
    )


class _Described:
    """A callable solver with the attributes that its layer was given."""

    def __init__(self, solver, sense: str, instance_dims: int, fractional: bool) -> None:
        self.solver, self.sense = solver, sense
        self.instance_dims, self.fractional = instance_dims, fractional
        if hasattr(solver, "fixed_size"):
            self.fixed_size = solver.fixed_size

    def __call__(self, scores: Tensor) -> Tensor:
        return self.solver(scores)


def _own_sense(solver, yours, theta: Tensor):
    """The solver, and 1, or -1 if the layer uses it in the opposite of its own sense."""
    own = getattr(solver, "sense", None)
    sense = getattr(yours, "sense", None) or own or "max"
    sign = 1.0 if own in (None, sense) else -1.0
    if isinstance(solver, Solver):
        return solver, sign
    dims = instance_dims_of(solver, theta, getattr(yours, "instance_dims", None))
    fractional = may_be_fractional(solver, getattr(yours, "fractional", None))
    return _Described(solver, own or sense, dims, fractional), sign
