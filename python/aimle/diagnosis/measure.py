"""Measures every estimator that applies to a problem, and finds the true gradient first."""

from collections.abc import Callable, Iterable, Sequence
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
from aimle.settings.checks import (
    check_batch,
    check_int,
    check_theta,
    check_type,
    instance_dims_of,
    is_number,
    refuse_type,
)
from aimle.solvers import Solver, check_solver

_OWNER = "diagnose"


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
        lambdas: values of a fixed lambda to try. They refer to a loss summed over samples.
        estimators: names from ``aimle.estimators()``, optionally with settings as on the command
            line (``sfe:baseline=leave_one_out``); None means all that apply.
        repeats: gradients per estimator, at least 2.
        warmup: backward passes that let adaptive estimators settle, at the first number of samples;
            a quarter of it at each further one.
        truth_samples: samples of the long run, if no exact gradient is available.
    """
    check_theta(_OWNER, theta)
    check_type(_OWNER, loss_fn, Callable, "loss_fn to be a function of z")
    nb_samples, lambdas = _sample_counts(nb_samples), _checked_lambdas(lambdas)
    estimators = _checked_names(estimators)
    check_int(_OWNER, "repeats", repeats, 2)
    check_int(_OWNER, "warmup", warmup, 0)
    check_int(_OWNER, "truth_samples", truth_samples, FEWEST_SAMPLES)
    yours = layer_or_solver if isinstance(layer_or_solver, nn.Module) else None
    solver = getattr(yours, "solver", None) if yours is not None else layer_or_solver
    if solver is None:
        expected = "layer_or_solver to be a layer such as aimle.AIMLE(solver), or a solver,"
        refuse_type(_OWNER, expected, layer_or_solver, _hint_for(yours))
    check_solver(_OWNER, solver)
    check_batch(
        _OWNER, theta, instance_dims_of(solver, theta, getattr(yours, "instance_dims", None))
    )
    _check_values(theta)
    solver, sign = _own_sense(solver, yours, theta)
    return measure(
        Problem(solver, model_of(yours, solver), sign * theta.detach(), loss_fn, yours, sign),
        nb_samples=nb_samples,
        lambdas=lambdas,
        estimators=estimators,
        repeats=repeats,
        warmup=warmup,
        truth_samples=truth_samples,
    )


def _listed(given: object) -> list[Any] | None:
    """The entries of a list or array; None if it is neither."""
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str) else None


def _sample_counts(given: Sequence[int] | int) -> list[int]:
    """The numbers of samples; raises TypeError or ValueError unless all are at least 1."""
    counts = _listed(given)
    if counts == []:
        raise ValueError(f"[aimle.{_OWNER}] expected at least one number in nb_samples but got []")
    counts = [given] if counts is None else counts
    return [check_int(_OWNER, "nb_samples", samples, 1) for samples in counts]


def _checked_lambdas(given: object) -> list[float]:
    """The fixed steps; raises ValueError unless all are numbers."""
    lambdas = _listed(given)
    if lambdas is None or not all(is_number(each) and each >= 0 for each in lambdas):
        raise ValueError(
            f"[aimle.{_OWNER}] expected lambdas to be a list of finite numbers >= 0 but got "
            f"{given!r}"
        )
    return lambdas


def _checked_names(given: object) -> list[str] | None:
    """The texts of estimators; raises TypeError or ValueError unless there are any."""
    if given is None:
        return None
    names = _listed(given)
    if names is None or not all(isinstance(each, str) for each in names):
        raise TypeError(
            f"[aimle.{_OWNER}] expected estimators to be None or a list of names such as "
            f'["aimle", "imle:lambda=10"] but got {given!r}'
        )
    if not names:
        raise ValueError(
            f"[aimle.{_OWNER}] expected at least one name in estimators but got []: None measures "
            "all that apply"
        )
    return names


def _hint_for(module: nn.Module | None) -> str:
    """What to pass instead of a module that is no estimator."""
    if module is None:
        return ""
    for name, each in module.named_modules():
        if name and hasattr(each, "solver"):
            return f": pass its layer, model.get_submodule({name!r})"
    return ": to use it as a solver, pass aimle.AIMLE(module)"


def _check_values(theta: Tensor) -> None:
    """Raises ValueError unless theta has examples without NaN."""
    if theta.numel() == 0:
        raise ValueError(
            f"[aimle.{_OWNER}] expected theta with at least one example but got shape "
            f"{list(theta.shape)}"
        )
    if bool(theta.isnan().any()) or not bool(theta.isfinite().any()):
        raise ValueError(
            f"[aimle.{_OWNER}] expected finite values of theta but got "
            f"{theta[~theta.isfinite()][0]:g}"
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
        check_int(_OWNER, "nb_samples", samples, 1)
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
    if not losses.is_finite:
        raise ValueError(
            f"[aimle.{_OWNER}] expected loss_fn to return finite losses but got NaN or infinite "
            "ones: call it on solutions, zeros and ones, to find out where"
        )
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
