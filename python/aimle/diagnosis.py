"""Which estimator suits a user's own scores, structure and loss?

    found = aimle.diagnose(layer, theta, loss_fn)   # theta [*batch, *instance], a real batch
    print(found)                                    # a table, and what is recommended
    found.save("out/diagnosis")                     # diagnosis.json and report.html

Every estimator that applies gives its gradient `repeats` times, and is held against the true one:
cosine (per example, averaged), norm ratio, bias, variance, zeros, time. The truth is

    exact                     by listing all structures, where there are few
    score function, long run  unbiased for p(z) ~ exp<theta, z>, where that has a closed form
    perturbation model, long run   of E loss(MAP(theta + noise)), for any other solver

and a long run states its standard error.
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
from aimle import _library, exact
from aimle._advice import name_of, recommend
from aimle._settings import check_int, check_tensor
from aimle.estimate.perturbed import _perturbed_solutions, _score
from aimle.noise import Gumbel, Logistic, Normal
from aimle.solvers import Argmax, GridPath, Solver, SpanningTree, TopK, check_solver

_FEW = 20_000  # structures to be listed
_BLOCKS = 20  # of a long run
_YOURS = "your layer"


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
            from aimle.report.diagnose import draw
        except ImportError:
            return folder / "diagnosis.json"
        return draw(folder)

    def __str__(self) -> str:
        lines = [f"truth: {self.truth}"]
        if self.truth_relative_se:
            lines[0] += f", known to {100 * self.truth_relative_se:.1f} %"
        for samples, group in self._ranked():
            lines.append(
                f"\nS = {samples}\n{'estimator':34} {'cosine':>8} {'norm':>7} {'bias':>8} "
                f"{'variance':>9} {'zeros':>6} {'us/call':>9}"
            )
            lines += [
                f"{name_of(row):34} {row['cosine']:8.3f} {row['norm_ratio']:7.2f} "
                f"{row['bias']:8.3f} {row['variance']:9.3g} {row['zeros']:6.2f} "
                f"{row['microseconds']:9.0f}"
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
    truth_samples: int = 40_000,
) -> Diagnosis:
    """Measures the estimators on a batch; see the module.

    Args:
        layer_or_solver: an estimator, which takes part as "your layer" from its state now and is
            left as it is, or a solver. All others see the solver in the sense of that layer.
        theta: [*batch, *instance].
        loss_fn: z [*batch, S, *instance] -> losses [*batch, S], each of its own sample.
        nb_samples: the numbers of samples S to look at, or one.
        lambdas: fixed steps to try. They refer to a loss summed over samples.
        estimators: names of ``aimle.estimators()``; all that apply if None.
        repeats: estimates of each kind, at least 2.
        warmup: backward passes by which adaptive estimators settle first.
        truth_samples: of a long run, where nothing exact is at hand.
    """
    check_tensor("diagnose", "theta", theta)
    check_int("diagnose", "repeats", repeats, 2)
    check_int("diagnose", "warmup", warmup, 0)
    check_int("diagnose", "truth_samples", truth_samples, 10 * _BLOCKS)
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
    dims = getattr(solver, "instance_dims", theta.dim() - 1)
    loss = _checked(loss_fn, theta, dims)
    losses = _Range(loss)
    truth, about, error = _find_truth(solver, yours, theta, losses, truth_samples)
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
    for samples in (nb_samples,) if isinstance(nb_samples, int) else nb_samples:
        check_int("diagnose", "nb_samples", samples, 1)
        for name, fixed, layer in _contestants(solver, yours, samples, lambdas, estimators):
            side = sign if name == _YOURS else 1.0
            _warm_up(layer, side * theta, loss, warmup)
            row = _measure(layer, side * theta, loss, side * truth, repeats, dims)
            step = row.pop("step")
            found.rows.append(
                {"estimator": name, "lambda": fixed if fixed is not None else step}
                | {"fixed_lambda": fixed is not None, "samples": samples}
                | row
            )
    return found


Loss = Callable[[Tensor], Tensor]


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


class _Costs:
    """A callable solver that minimises, and says so."""

    sense = "min"

    def __init__(self, solver: Callable[..., Tensor], instance_dims: int) -> None:
        self.solver, self.instance_dims = solver, instance_dims

    def __call__(self, costs: Tensor) -> Tensor:
        return self.solver(costs)


def _own_sense(solver, yours, theta: Tensor):
    """The solver, and 1, or -1 where its own sense is not that in which the layer uses it."""
    sense = getattr(yours, "sense", None)
    if sense is None or sense == getattr(solver, "sense", "max"):
        return solver, 1.0
    if hasattr(solver, "sense"):
        return solver, -1.0
    return _Costs(solver, getattr(solver, "instance_dims", theta.dim() - 1)), 1.0


def _contestants(solver, yours, samples, lambdas, names):
    """(name, fixed lambda, estimator), for all that apply."""
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
            settings: dict[str, Any] = {} if fixed is None else {"lambda_": float(fixed)}
            if name != "dbb":
                settings["nb_samples"] = samples
            try:
                yield name, fixed, aimle.estimator(name, solver, **settings)
            except TypeError:
                if names is not None:
                    raise  # it was asked for by name
            except ValueError:
                continue  # needs more samples


def _gradient(layer: nn.Module, theta: Tensor, loss: Loss) -> tuple[Tensor, int]:
    """The estimate, mean over samples, and the number of them."""
    theta = theta.clone().requires_grad_()
    z = layer(theta)
    losses = loss(z)
    surrogate = getattr(layer, "surrogate", None)
    total = losses if surrogate is None else surrogate(theta, z, losses)
    count = losses.shape[-1]
    (gradient,) = torch.autograd.grad(total.sum(), theta, allow_unused=True)
    return (torch.zeros_like(theta) if gradient is None else gradient / count), count


def _warm_up(layer: nn.Module, theta: Tensor, loss: Loss, steps: int) -> None:
    if getattr(layer, "alpha", None) is None:
        return
    for _ in range(steps):
        _gradient(layer, theta, loss)


def _measure(
    layer: nn.Module, theta: Tensor, loss: Loss, truth: Tensor, repeats: int, dims: int
) -> dict:
    alpha = getattr(layer, "alpha", None)
    alpha = float(alpha) if alpha is not None else None
    stats = getattr(layer, "stats", None)
    estimates, steps, fastest = [], [], math.inf
    for _ in range(repeats):
        start = time.perf_counter()
        estimates.append(_gradient(layer, theta, loss)[0].double())
        fastest = min(fastest, time.perf_counter() - start)
        seen = None if stats is None else stats().get("lambda_mean")
        if seen is not None and bool(torch.isfinite(seen)):
            steps.append(float(seen))
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
        "bias": math.sqrt(max(0.0, squared - variance / repeats)),
        "variance": variance,
        "zeros": float((all_.abs() < 1e-8).double().mean()),
        "alpha": alpha,
        "microseconds": 1e6 * fastest,
        "step": sum(steps) / len(steps) if steps else None,
    }


# ---- the truth ---------------------------------------------------------------------------------


def _count(solver: object, theta: Tensor) -> float:
    """The number of structures, infinite where it is not known to be small."""
    n = theta.shape[-1]
    if isinstance(solver, Argmax):
        return n
    if isinstance(solver, TopK):
        return math.comb(n, solver.k)
    if isinstance(solver, SpanningTree):
        return solver.n ** max(solver.n - 2, 0) if solver.n <= 7 else math.inf
    if isinstance(solver, GridPath):
        return 1 if max(theta.shape[-2:]) <= 4 else math.inf
    return math.inf


def _find_truth(solver, yours, theta: Tensor, loss: Loss, samples: int):
    """(gradient in float64, how it was found, its relative standard error)."""
    wide = theta.double()
    if _count(solver, theta) * theta.numel() <= _FEW * 100 and _count(solver, theta) <= _FEW:
        dims = solver.instance_dims
        batch = theta.shape[: theta.dim() - dims]

        def listed(z: Tensor) -> Tensor:
            every = z.to(theta.dtype).expand(*batch, *z.shape)
            return loss(every).double()

        return exact.exact_gradient(solver, wide, listed), "exact", 0.0
    share = samples // _BLOCKS
    if isinstance(solver, Argmax | TopK | SpanningTree):
        layer = aimle.estimator("sfe", solver, baseline="leave_one_out", nb_samples=share)
        blocks = [_gradient(layer, theta, loss)[0].double() for _ in range(_BLOCKS)]
        return _average(blocks, "score function, long run")
    noise = getattr(yours, "noise", None)
    noise = noise if isinstance(noise, Gumbel | Normal | Logistic) else Gumbel()
    tau = float(getattr(yours, "theta_noise_temperature", 1.0)) or 1.0
    blocks = [_model_gradient(solver, noise, tau, theta, loss, share) for _ in range(_BLOCKS)]
    return _average(blocks, "perturbation model, long run")


def _average(blocks: list[Tensor], about: str) -> tuple[Tensor, str, float]:
    all_ = torch.stack(blocks)
    mean = all_.mean(0)
    error = float((all_.var(0).sum() / len(blocks)).sqrt() / mean.norm())
    return mean, about, error


def _model_gradient(solver, noise, tau: float, theta: Tensor, loss: Loss, samples: int) -> Tensor:
    """mean_s (f_s - mean of the others) nu'(eps_s) / tau: unbiased for any solver and loss."""
    sense = getattr(solver, "sense", "max")
    dims = getattr(solver, "instance_dims", theta.dim() - 1)
    key = aimle.draw_key(theta)
    eps, z = _perturbed_solutions(solver, sense, noise, tau, samples, theta, None, None, key, dims)
    place = theta.dim() - dims
    losses = loss(z.movedim(0, place)).detach().double().movedim(-1, 0)
    centred = (losses - losses.mean(0)) * (samples / (samples - 1))
    score = _score(noise, eps.double()) / tau
    weights = centred.reshape(*centred.shape, *([1] * dims))
    return (-1.0 if sense == "min" else 1.0) * (weights * score).mean(0)
