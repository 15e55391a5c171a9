"""Which estimator suits a user's own scores, structure and loss?

    found = aimle.diagnose(layer, theta, loss_fn)   # theta [*batch, *instance], a real batch
    print(found)                                    # a table, and what is recommended
    found.save("out/diagnosis")                     # diagnosis.json and report.html

Every estimator that applies gives its gradient `repeats` times, which are compared with the true
one: cosine (per example, averaged), norm ratio, bias, variance, zeros, time and, of grid paths, the
share of costs that noise and step took below zero. With tau the temperature of the layer, or the
solver's own if only a solver is given, the truth is

    exact                     of p(z) ~ exp<theta/tau, z>, by listing all structures
    score function, long run  of the same, where it has a closed form but too many structures
    perturbation model, long run   of E loss(MAP(theta + tau noise)), for any other solver or noise

and a long run states its standard error. The first two are for Gumbel and Sum-of-Gamma noise. The
other estimators are given the layer's noise and temperature: dividing theta by tau is the same, up
to the length of the gradient, for those that have no noise of their own.
"""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import aimle
from aimle import _library
from aimle._advice import name_of, recommend
from aimle._answers import may_be_fractional
from aimle._settings import check_int, check_tensor, instance_dims_of
from aimle._truth import FEWEST_SAMPLES, Loss, Model, estimate_gradient, find_truth, model_of
from aimle.solvers import Solver, check_solver

_YOURS = "your layer"
# The estimators whose noise can be chosen, but those that are without noise unless it is asked for.
_WITH_NOISE = frozenset(
    [
        "aimle",
        "aimle_forward",
        "aimle_noise",
        "aimle_covariance",
        "imle",
        "imle_central",
        "ste",
        "thresholds",
        "dpo",
    ]
)


@dataclass
class Diagnosis:
    """What was found; ``rows`` are dicts with the keys of diagnosis.json."""

    structure: str
    shape: list[int]
    truth: str
    truth_relative_se: float
    repeats: int
    rows: list[dict[str, Any]] = field(default_factory=list)

    @property
    def recommendations(self) -> list[dict[str, Any]]:
        """For each S the highest cosine, or what is as good within its error and much simpler."""
        return [recommend(group) for _, group in self._ranked()]

    def save(self, folder: str | Path) -> Path:
        """Writes diagnosis.json and, with matplotlib, report.html; its path."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        found = {
            "version": _library.version,
            "structure": self.structure,
            "shape": self.shape,
            "loss": "given",
            "truth": self.truth,
            "truth_relative_se": self.truth_relative_se,
            "repeats": self.repeats,
            "results": self.rows,
            "recommendations": self.recommendations,
        }
        (folder / "diagnosis.json").write_text(json.dumps(found, indent=1) + "\n")
        try:
            from aimle.program.report.diagnose import draw
        except ImportError:
            return folder / "diagnosis.json"
        return draw(folder)

    def __str__(self) -> str:
        lines = [f"truth: {self.truth}"]
        if self.truth_relative_se:
            lines[0] += f", known to {100 * self.truth_relative_se:.1f} %"
        clips = any(row["clipped"] is not None for row in self.rows)
        for samples, group in self._ranked():
            lines.append(
                f"\nS = {samples}\n{'estimator':34} {'cosine':>8} {'norm':>7} {'bias':>8} "
                f"{'variance':>9} {'zeros':>6} {'us/call':>9}{' clipped' if clips else ''}"
            )
            lines += [
                f"{name_of(row):34} {row['cosine']:8.3f} {row['norm_ratio']:7.2f} "
                f"{row['bias']:8.3f} {row['variance']:9.3g} {row['zeros']:6.2f} "
                f"{row['microseconds']:9.0f}{_clipped(row) if clips else ''}"
                for row in group
            ]
        lines.append("")
        lines += [
            f"S = {advice['samples']}: {name_of(advice)} ({advice['reason']})"
            for advice in self.recommendations
        ]
        return "\n".join(lines)

    def _ranked(self) -> list[tuple[int, list[dict[str, Any]]]]:
        """By S, each estimator at its best lambda, by falling cosine."""
        best: dict[tuple[int, str], dict[str, Any]] = {}
        for row in self.rows:
            key = (row["samples"], row["estimator"])
            if key not in best or row["cosine"] > best[key]["cosine"]:
                best[key] = row
        ranked = sorted(best.values(), key=lambda row: -row["cosine"])
        counts = sorted({row["samples"] for row in ranked})
        return [(count, [r for r in ranked if r["samples"] == count]) for count in counts]


def _clipped(row: dict[str, Any]) -> str:
    """The share of costs that were below zero in backward; nothing where none is counted."""
    return "" if row["clipped"] is None else f" {row['clipped']:7.3f}"


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
    """Measures the estimators on a batch; see the module.

    Args:
        layer_or_solver: an estimator, which takes part as "your layer" from its state now and is
            left as it is, or a solver. All others use the solver in the sense of that layer, with
            its noise and temperature.
        theta: [*batch, *instance].
        loss_fn: z [*batch, S, *instance] -> losses [*batch, S], each of its own sample.
        nb_samples: the numbers of samples S to look at, or one.
        lambdas: fixed steps to try, in units of theta. They refer to a loss summed over samples.
        estimators: names of ``aimle.estimators()``; all that apply if None.
        repeats: estimates of each kind, at least 2.
        warmup: backward passes by which adaptive estimators settle first, at the first number of
            samples; a quarter of it at each further one.
        truth_samples: of a long run, where nothing exact is at hand.
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
    theta = sign * theta.detach()
    dims = instance_dims_of(solver, theta)
    loss = _checked(loss_fn, theta, dims)
    losses = _Range(loss)
    model = model_of(yours, solver)
    truth, about, error = find_truth(solver, model, theta, losses, truth_samples)
    if losses.is_a_point() or not truth.norm() > 0:
        raise ValueError(
            "[aimle.diagnose] the true gradient is zero: the loss ignores the choice, it is "
            f"{losses.high.flatten()[0]:g} for all solutions of the first example"
        )
    found = Diagnosis(
        structure=type(solver).__name__ if isinstance(solver, Solver) else "callable",
        shape=list(theta.shape),
        truth=about,
        truth_relative_se=error,
        repeats=repeats,
    )
    settled: dict[str, dict[str, Tensor]] = {}
    for samples in (nb_samples,) if isinstance(nb_samples, int) else nb_samples:
        check_int("diagnose", "nb_samples", samples, 1)
        for name, fixed, layer in _contestants(solver, yours, model, samples, lambdas, estimators):
            # The others see theta / tau, whose gradient is tau times theta's.
            scale = sign if name == _YOURS else 1.0 / model.temperature
            _warm_up(name, layer, scale * theta, loss, warmup, settled)
            row = _measure(layer, scale * theta, loss, truth / scale, repeats, dims, error)
            step = row.pop("step")
            step = None if step is None else step / abs(scale)
            found.rows.append(
                {"estimator": name, "lambda": fixed if fixed is not None else step}
                | {"fixed_lambda": fixed is not None, "samples": samples}
                | row
            )
    return found


def _checked(loss_fn: Loss, theta: Tensor, dims: int) -> Loss:
    """loss_fn, held to its shape; one z per example is one sample."""

    def loss(z: Tensor) -> Tensor:
        if z.dim() == theta.dim():
            z = z.unsqueeze(theta.dim() - dims)
        losses = loss_fn(z)
        if not isinstance(losses, Tensor):
            raise TypeError(
                "[aimle.diagnose] expected loss_fn to return a tensor but got "
                f"{type(losses).__name__}"
            )
        wanted = z.shape[: z.dim() - dims]
        if losses.shape != wanted:
            raise ValueError(
                f"[aimle.diagnose] expected loss_fn to return {list(wanted)}, a loss for every "
                f"sample, but got {list(losses.shape)}"
            )
        if z.requires_grad and not losses.requires_grad:
            raise ValueError(
                "[aimle.diagnose] expected loss_fn to be differentiable in z but its losses have "
                'no gradient: estimators=["sfe"] needs none'
            )
        return losses

    return loss


class _Range:
    """A loss that remembers the least and the greatest value it gave to each example."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self.low = self.high = torch.tensor(math.nan)

    def __call__(self, z: Tensor) -> Tensor:
        losses = self.loss(z)
        seen = losses.detach()
        self.low = torch.fmin(self.low, seen.amin(-1))
        self.high = torch.fmax(self.high, seen.amax(-1))
        return losses

    def is_a_point(self) -> bool:
        """Whether no example's loss changed by more than rounding does."""
        rounding = 8 * torch.finfo(self.high.dtype).eps
        size = torch.maximum(self.low.abs(), self.high.abs())
        return bool((self.high - self.low <= rounding * size).all())


class _Described:
    """A callable solver that says what its layer was told of it."""

    def __init__(self, solver, sense: str, instance_dims: int, fractional: bool) -> None:
        self.solver, self.sense = solver, sense
        self.instance_dims, self.fractional = instance_dims, fractional
        if hasattr(solver, "fixed_size"):
            self.fixed_size = solver.fixed_size

    def __call__(self, scores: Tensor) -> Tensor:
        return self.solver(scores)


def _own_sense(solver, yours, theta: Tensor):
    """The solver, and 1, or -1 where its own sense is not that in which the layer uses it."""
    own = getattr(solver, "sense", None)
    sense = getattr(yours, "sense", None) or own or "max"
    sign = 1.0 if own in (None, sense) else -1.0
    if isinstance(solver, Solver):
        return solver, sign
    dims = instance_dims_of(solver, theta, getattr(yours, "instance_dims", None))
    fractional = may_be_fractional(solver, getattr(yours, "fractional", None))
    return _Described(solver, own or sense, dims, fractional), sign


def _contestants(solver, yours, model: Model, samples, lambdas, names):
    """(name, fixed lambda, estimator of theta / temperature), for all that apply."""
    if yours is not None:
        own = copy.deepcopy(yours).train()
        if hasattr(own, "nb_samples"):
            own.nb_samples = samples
        if getattr(own, "output", "samples") == "flat":
            own.output = "samples"
        yield _YOURS, None, own
    for name in names or aimle.estimators():
        has_step = name in ("imle", "imle_central", "dbb")
        for fixed in lambdas if has_step else (None,):
            settings: dict[str, Any] = {}
            if fixed is not None:
                settings["lambda_"] = float(fixed) / model.temperature
            if name != "dbb":
                settings["nb_samples"] = samples
            if model.noise is not None and name in _WITH_NOISE:
                needs_density = name in ("thresholds", "dpo")
                settings["noise"] = model.with_density()[0] if needs_density else model.noise
            try:
                yield name, fixed, aimle.estimator(name, solver, **settings)
            except TypeError:
                if names is not None:
                    raise  # it was asked for by name
            except ValueError:
                continue  # needs more samples


def _warm_up(
    name: str,
    layer: nn.Module,
    theta: Tensor,
    loss: Loss,
    steps: int,
    settled: dict[str, dict[str, Tensor]],
) -> None:
    """Lets an adaptive layer settle, from where it was with another number of samples."""
    if getattr(layer, "alpha", None) is None:
        return
    if name in settled:
        layer.load_state_dict(settled[name])
        steps //= 4
    for _ in range(steps):
        estimate_gradient(layer, theta, loss)
    settled[name] = {key: value.clone() for key, value in layer.state_dict().items()}


def _measure(
    layer: nn.Module,
    theta: Tensor,
    loss: Loss,
    truth: Tensor,
    repeats: int,
    dims: int,
    truth_error: float = 0.0,
) -> dict:
    alpha = getattr(layer, "alpha", None)
    alpha = float(alpha) if alpha is not None else None
    stats = getattr(layer, "stats", None)
    estimates: list[Tensor] = []
    steps: list[float] = []
    clipped: list[float] = []
    fastest = math.inf
    for _ in range(repeats):
        start = time.perf_counter()
        estimates.append(estimate_gradient(layer, theta, loss)[0].double())
        fastest = min(fastest, time.perf_counter() - start)
        seen = {} if stats is None else stats()
        for name, values in (("lambda_mean", steps), ("clipped_share", clipped)):
            if name in seen and bool(torch.isfinite(seen[name])):
                values.append(float(seen[name]))
    all_ = torch.stack(estimates)
    mean, scale = all_.mean(0), truth.norm()
    target = truth.flatten(truth.dim() - dims).reshape(-1, truth.shape[-dims:].numel())
    cosine = torch.cosine_similarity(
        all_.reshape(repeats, *target.shape), target.expand(repeats, -1, -1), dim=-1, eps=1e-30
    )
    known = target.norm(dim=-1) > 0
    each = (cosine * known).sum(1) / known.sum()
    variance = float((all_ - mean).square().sum() / (repeats - 1) / scale**2)
    squared = float((mean - truth).square().sum() / scale**2)
    return {
        "cosine": float(each.mean()),
        "cosine_se": float(each.std() / math.sqrt(repeats)),
        "norm_ratio": float(mean.norm() / scale),
        "bias": math.sqrt(max(0.0, squared - variance / repeats - truth_error**2)),
        "variance": variance,
        "zeros": float((all_.abs() < 1e-8).double().mean()),
        "alpha": alpha,
        "microseconds": 1e6 * fastest,
        "clipped": sum(clipped) / len(clipped) if clipped else None,
        "step": sum(steps) / len(steps) if steps else None,
    }
