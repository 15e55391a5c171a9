"""Targets: how far the backward pass steps along the incoming gradient.

Targets are frozen settings; what changes during training (alpha, gbar, updates) is in the layer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from typing import Any, Literal

from aimle.settings.checks import is_number
from aimle.settings.names import with_known_names

Scope = Literal["example", "sample", "batch"]
Scale = Literal["auto", "theta", "noise"]
Rule = Literal["additive", "multiplicative"]

#: The default bounds of alpha. The upper one is larger for the forward difference on costs.
SMALLEST_ALPHA, LARGEST_ALPHA, LARGEST_ALPHA_OF_COSTS = 1e-6, 4.0, 16.0

_ALLOWED = {
    "scope": ("example", "sample", "batch"),
    "scale": ("auto", "theta", "noise"),
    "rule": ("additive", "multiplicative"),
}


def _require(owner: object, name: str, condition: bool, allowed: str) -> None:
    if not condition:
        raise ValueError(
            f"[aimle.{type(owner).__name__}] expected {name} {allowed} but got "
            f"{getattr(owner, name)!r}"
        )


@with_known_names
@dataclass(frozen=True)
class FixedTarget:
    """A constant step `lambda_` in units of the incoming gradient (IMLE, DBB).

    The step is theta -+ lambda_ d, where d is the gradient of the loss with respect to z. The right
    lambda_ therefore depends on the scale of the loss: taking a mean over samples or over a batch
    makes d and the step smaller, and ``torch.amp.GradScaler`` multiplies both by its scale (65536
    initially). The gradient estimate changes with the step. ``AdaptiveTarget.constant(alpha)`` is
    a step that does not depend on that scale: its length is alpha times the length of theta.
    """

    lambda_: float = 1.0

    def __post_init__(self) -> None:
        valid = is_number(self.lambda_) and self.lambda_ >= 0
        _require(self, "lambda_", valid, "finite and >= 0")


@with_known_names
@dataclass(frozen=True, repr=False)
class AdaptiveTarget:
    """A step size that adapts to the number of entries of a solution that it changes.

        lambda_s = alpha * ||theta|| / ||d_s||

    alpha starts at its upper bound and is multiplied or divided by a factor until, on average, c
    entries change: half of what the largest step changes, divided by sqrt(nb_samples). ||theta|| is
    at least the norm of the noise, and norms ignore directions that cannot change a solution. The
    defaults need no tuning. ``paper()`` is Algorithm 1 of the AIMLE paper, ``reference()`` the
    authors' code, and ``constant()`` keeps alpha fixed.

    Args:
        initial_alpha: where alpha starts; None means the upper bound of alpha_range (its lower
            bound if there is no upper one).
        step: the additive rule's increment of alpha; giving it selects that rule.
        target_norm: c, the target number of changed entries; None means that it is measured.
        decay: decay of the moving average of the number of changed entries.
        scope: what the norms in the ratio are taken over: every "sample", every "example" (the
            paper) or the "batch" (in distributed training: this process's part of it).
        scale: what alpha is a fraction of: "auto" as above; "theta", the plain norm of theta (the
            paper); "noise", sigma * sqrt(n).
        rule: "multiplicative" (alpha * factor, / factor) or "additive" (the paper: alpha +- step).
        factor: the factor of the multiplicative rule.
        alpha_range: bounds of alpha; the upper one may be ``math.inf`` if target_norm is given.
            None means 1e-6 and 4, or 16 for the forward difference on costs: paths of costs, and
            callables that minimise.
        momentum: momentum of alpha with the additive rule, if target_norm is given.
        initial_gbar: where the moving average starts.
    """

    initial_alpha: float | None = None
    step: float | None = None
    target_norm: float | None = None
    decay: float = 0.9
    scope: Scope = "sample"
    scale: Scale = "auto"
    rule: Rule | None = None
    factor: float = 1.02
    alpha_range: tuple[float, float] | None = None
    momentum: float = field(default=0.0, kw_only=True)
    initial_gbar: float = field(default=1.0, kw_only=True)
    _reference: bool = field(default=False, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if self.rule is None:
            given = "multiplicative" if self.step is None else "additive"
            object.__setattr__(self, "rule", given)
        if self.step is None:
            object.__setattr__(self, "step", 1e-3)
        for name, allowed in _ALLOWED.items():
            known = getattr(self, name) in allowed
            _require(self, name, known, f"to be one of {', '.join(allowed)}")
        for name in ("step", "initial_gbar"):
            value = getattr(self, name)
            _require(self, name, is_number(value) and value >= 0, "finite and >= 0")
        count = self.target_norm
        counts = count is None or (is_number(count) and count >= 0)
        _require(self, "target_norm", counts, "finite and >= 0, or None")
        for name in ("decay", "momentum"):
            value = getattr(self, name)
            _require(self, name, is_number(value) and 0 <= value < 1, "in [0, 1)")
        _require(self, "factor", is_number(self.factor) and self.factor > 1, "finite and > 1")
        self._check_range()
        if count is None:
            or_give = "where target_norm is None (or give target_norm)"
            bounded = self.alpha_range is None or not math.isinf(self.alpha_range[1])
            _require(self, "alpha_range", bounded, f"with a finite upper bound {or_give}")
            _require(self, "momentum", self.momentum == 0, f"to be 0 {or_give}")

    def _check_range(self) -> None:
        given = self.alpha_range
        if given is None:
            given = (SMALLEST_ALPHA, LARGEST_ALPHA_OF_COSTS)  # the layer may have a smaller one
        pair = isinstance(given, tuple | list) and len(given) == 2
        _require(self, "alpha_range", pair, "to be (low, high)")
        low, high = given
        inside = is_number(low) and (is_number(high) or high == math.inf)
        valid = inside and 0 <= low <= high and high > 0
        _require(self, "alpha_range", valid, "to be (low, high) with 0 <= low <= high and high > 0")
        positive = low > 0 or self.rule != "multiplicative"
        _require(self, "alpha_range", positive, "with low > 0 for rule='multiplicative'")
        within = is_number(self.start) and low <= self.start <= high
        _require(self, "initial_alpha", within, f"within alpha_range [{low:g}, {high:g}]")

    def __repr__(self) -> str:
        """The settings that differ from those of the closest classmethod."""
        name, base = "AdaptiveTarget", _DEFAULT
        if self._reference:
            name, base = "AdaptiveTarget.reference", type(self).reference()
        elif self._is_published:
            name, base = "AdaptiveTarget.paper", type(self).paper()
        given = [
            f"{each.name}={getattr(self, each.name)!r}"
            for each in fields(self)
            if each.repr and getattr(self, each.name) != getattr(base, each.name)
        ]
        return f"{name}({', '.join(given)})"

    @property
    def _is_published(self) -> bool:
        """Whether this is the paper's rule or the authors' (aimle/estimate/published.h)."""
        return self._reference or (self.scale == "theta" and self.rule == "additive")

    @property
    def start(self) -> float:
        """Where alpha starts."""
        if self.initial_alpha is not None:
            return self.initial_alpha
        low, high = self.bounds
        return low if math.isinf(high) else high

    @property
    def bounds(self) -> tuple[float, float]:
        """alpha_range, or its default for scores."""
        return self.alpha_range or (SMALLEST_ALPHA, LARGEST_ALPHA)

    def bounded(self, largest: float) -> AdaptiveTarget:
        """This target with an alpha_range: its own, or one that ends at `largest`."""
        if self.alpha_range is not None:
            return self
        return replace(self, alpha_range=(SMALLEST_ALPHA, largest))

    @classmethod
    def paper(cls, initial_alpha: float | None = None, **settings) -> AdaptiveTarget:
        """Algorithm 1 of the paper: alpha starts at 0 and moves by 1e-3, and c = 1.

        The step is zero where theta is zero, and takes hundreds of updates to grow.
        """
        defaults: dict[str, Any] = {
            "scope": "example",
            "scale": "theta",
            "rule": "additive",
            "target_norm": 1.0,
        }
        defaults["alpha_range"] = (0.0, math.inf)
        return cls(initial_alpha, **{**defaults, **settings})

    @classmethod
    def reference(cls, initial_alpha: float | None = None, **settings) -> AdaptiveTarget:
        """The authors' public code, where it differs from the paper.

        One lambda for the whole batch, a gradient too large by a factor of sqrt(nb_samples), alpha
        raised only while gbar < target_norm, and samples without a gradient counted as unchanged
        (so that alpha grows while the gradient is zero).
        """
        return cls.paper(initial_alpha, **{"scope": "batch", "_reference": True, **settings})

    @classmethod
    def constant(cls, alpha: float = 1.0, **settings) -> AdaptiveTarget:
        """A constant alpha: a fixed step that does not depend on the scale of the loss.

        Unlike ``FixedTarget``, the step is unaffected by a gradient scaler or by taking a mean
        instead of a sum.
        """
        return cls(alpha_range=(alpha, alpha), target_norm=1.0, **settings)


_DEFAULT = AdaptiveTarget()


@dataclass(frozen=True)
class ThresholdTarget:
    """No step: weights from the noise's density at the thresholds (aimle.Thresholds)."""

    density: str
    order: Literal["first", "trapezoid"] = "trapezoid"
    max_weight: float = 20.0

    def __post_init__(self) -> None:
        known = self.order in ("first", "trapezoid")
        _require(self, "order", known, "to be one of first, trapezoid")
        weight = self.max_weight
        valid = isinstance(weight, Real) and not isinstance(weight, bool) and weight > 0
        _require(self, "max_weight", valid, "> 0")


Target = FixedTarget | AdaptiveTarget


def target_text(target: Target | ThresholdTarget) -> str:
    """A target as text in the settings of the layer ops (aimle/torch/layer/layer_settings.h)."""
    if isinstance(target, ThresholdTarget):
        return (
            f"target=thresholds density={target.density} order={target.order} "
            f"max_weight={float(target.max_weight)!r}"
        )
    if isinstance(target, FixedTarget):
        return f"target=fixed lambda={float(target.lambda_)!r}"
    low, high = target.bounds
    assert target.rule is not None  # set together with the other settings
    assert target.step is not None
    numbers = {
        "step": target.step,
        "target_norm": -1.0 if target.target_norm is None else target.target_norm,
        "decay": target.decay,
        "factor": target.factor,
        "alpha_min": low,
        "alpha_max": 0.0 if math.isinf(high) else high,
        "momentum": target.momentum,
    }
    variant = "reference" if target._reference else "paper"
    words = f"scope={target.scope} scale={target.scale} rule={target.rule} variant={variant}"
    written = " ".join(f"{name}={float(value)!r}" for name, value in numbers.items())
    return f"target=adaptive {words} {written}"
