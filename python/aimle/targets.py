"""Targets: how far the backward pass steps along the incoming gradient.

Settings only, frozen; what changes during training (alpha, gbar, updates) lives in the layer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import Literal

from aimle._settings import is_number

Scope = Literal["example", "sample", "batch"]
Scale = Literal["theta", "noise"]
Rule = Literal["additive", "multiplicative"]

_ALLOWED = {
    "scope": ("example", "sample", "batch"),
    "scale": ("theta", "noise"),
    "rule": ("additive", "multiplicative"),
}


def _require(owner: object, condition: bool, name: str, value: object, allowed: str) -> None:
    if not condition:
        raise ValueError(
            f"[aimle.{type(owner).__name__}] expected {name} {allowed} but got {value!r}"
        )


@dataclass(frozen=True)
class FixedTarget:
    """A constant step `lambda_` in units of the gradient that arrives (IMLE, DBB).

    A mean over samples or a loss scaler shrinks or grows that gradient, and with it the step.
    """

    lambda_: float = 1.0

    def __post_init__(self) -> None:
        value = self.lambda_
        _require(self, is_number(value) and value >= 0, "lambda_", value, "finite and >= 0")


@dataclass(frozen=True, repr=False)
class AdaptiveTarget:
    """A step that tunes itself so that on average `target_norm` entries of a solution change.

    lambda = alpha * mean_s(||theta|| / ||d_s||), Algorithm 1 of the paper by default.

    Args:
        initial_alpha: where alpha starts; None means 0 (additive) or 1 (multiplicative).
        step: the additive rule's increment of alpha.
        target_norm: the number of changed entries aimed for, the paper's c.
        decay: of the moving average of the number of changed entries.
        scope: whose norms make the ratio: of every "example" (the paper), "sample" or the "batch".
        scale: "theta" (the paper), or "noise": alpha * sigma * sqrt(n) * mean_s(1 / ||d_s||), which
            also works where theta is zero.
        rule: "additive" (the paper: alpha +- step) or "multiplicative" (alpha * factor, / factor).
        factor: of the multiplicative rule.
        alpha_range: bounds of alpha; None means [0, inf) (additive) or [1, 1000] (multiplicative).
    """

    initial_alpha: float | None = None
    step: float = 1e-3
    target_norm: float = 1.0
    decay: float = 0.9
    scope: Scope = "example"
    scale: Scale = "theta"
    rule: Rule = "additive"
    factor: float = 1.1
    alpha_range: tuple[float, float] | None = None
    momentum: float = field(default=0.0, kw_only=True)
    initial_gbar: float = field(default=1.0, kw_only=True)
    _reference: bool = field(default=False, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        for name, allowed in _ALLOWED.items():
            value = getattr(self, name)
            _require(self, value in allowed, name, value, f"to be one of {', '.join(allowed)}")
        for name in ("step", "target_norm", "initial_gbar"):
            value = getattr(self, name)
            _require(self, is_number(value) and value >= 0, name, value, "finite and >= 0")
        for name in ("decay", "momentum"):
            value = getattr(self, name)
            _require(self, is_number(value) and 0 <= value < 1, name, value, "in [0, 1)")
        factor, given = self.factor, self.alpha_range
        _require(self, is_number(factor) and factor > 1, "factor", factor, "finite and > 1")
        pair = given is None or (isinstance(given, tuple | list) and len(given) == 2)
        _require(self, pair, "alpha_range", given, "to be (low, high) or None")
        low, high = self.bounds if given is None else given
        inside = is_number(low) and (is_number(high) or high == math.inf)
        _require(
            self,
            inside and 0 <= low <= high and high > 0,
            "alpha_range",
            given,
            "to be (low, high) with 0 <= low <= high and high > 0",
        )
        if self.rule == "multiplicative":
            _require(self, low > 0, "alpha_range", given, "with low > 0 for rule='multiplicative'")
        start = self.start
        _require(
            self,
            is_number(start) and low <= start <= high,
            "initial_alpha",
            start,
            f"within alpha_range [{low:g}, {high:g}]",
        )

    def __repr__(self) -> str:
        """The settings that are not the defaults."""
        given = [
            f"{each.name}={getattr(self, each.name)!r}"
            for each in fields(self)
            if each.repr and getattr(self, each.name) != each.default
        ]
        if self._reference:
            given = [setting for setting in given if setting != "scope='batch'"]
        name = f"{type(self).__name__}{'.reference' if self._reference else ''}"
        return f"{name}({', '.join(given)})"

    @property
    def bounds(self) -> tuple[float, float]:
        """The range of alpha."""
        if self.alpha_range is not None:
            low, high = self.alpha_range
            return float(low), float(high)
        return (1.0, 1000.0) if self.rule == "multiplicative" else (0.0, math.inf)

    @property
    def start(self) -> float:
        """Where alpha starts."""
        if self.initial_alpha is not None:
            return self.initial_alpha
        low, high = self.bounds
        return min(max(1.0, low), high) if self.rule == "multiplicative" else low

    @classmethod
    def reference(cls, **settings) -> AdaptiveTarget:
        """The authors' public code, where it differs from the paper.

        One lambda for the whole batch, a gradient too large by sqrt(nb_samples), alpha raised only
        while gbar < target_norm, and samples without a gradient counted as unchanged (so that alpha
        grows while the gradient is zero).
        """
        return cls(scope="batch", _reference=True, **settings)


@dataclass(frozen=True)
class ThresholdTarget:
    """No step: weights by the noise's density at the thresholds (aimle.Thresholds)."""

    density: str
    order: Literal["first", "trapezoid"] = "trapezoid"
    max_weight: float = 20.0

    def __post_init__(self) -> None:
        _require(
            self,
            self.order in ("first", "trapezoid"),
            "order",
            self.order,
            "to be one of first, trapezoid",
        )
        value = self.max_weight
        _require(self, isinstance(value, Real) and value > 0, "max_weight", value, "> 0")


Target = FixedTarget | AdaptiveTarget


def target_arguments(target: Target | ThresholdTarget) -> tuple[str, list[float]]:
    """What a target adds to `choices` and `scales` of the layer ops (layer_schema.h)."""
    if isinstance(target, ThresholdTarget):
        return f"thresholds {target.density} {target.order}", [float(target.max_weight)]
    if isinstance(target, FixedTarget):
        return "fixed", [float(target.lambda_)]
    low, high = target.bounds
    names = [
        "adaptive",
        target.scope,
        target.scale,
        target.rule,
        "reference" if target._reference else "paper",
    ]
    values = [
        target.step,
        target.target_norm,
        target.decay,
        target.factor,
        low,
        0.0 if math.isinf(high) else high,
        target.momentum,
    ]
    return " ".join(names), [float(value) for value in values]
