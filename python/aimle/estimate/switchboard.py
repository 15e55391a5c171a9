"""The switchboard: one name, one solver, settings by keyword.

    layer = aimle.estimator("imle", aimle.TopK(k=10), lambda_=10.0, nb_samples=5)

The names are those of the C++ functions, of the studies and of the command line.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from aimle.estimate.marginal import SST, ExactMarginals
from aimle.estimate.perturbed import DPO
from aimle.estimate.reinmax import ReinMax
from aimle.estimate.relaxed import L2X, GumbelSoftmax, SoftSub
from aimle.estimate.score import SFE, CovarianceAIMLE
from aimle.estimate.thresholds import Thresholds
from aimle.layers import AIMLE, DBB, IMLE, STE, Identity
from aimle.solvers import Solver
from aimle.targets import AdaptiveTarget

_ADAPTIVE = [
    field.name for field in dataclasses.fields(AdaptiveTarget) if not field.name.startswith("_")
]


def _with_target(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings, those of AdaptiveTarget among them gathered into target."""
    own = {name: settings.pop(name) for name in _ADAPTIVE if name in settings}
    if own:
        if "target" in settings:
            raise TypeError(
                f"[aimle.estimator] give {', '.join(sorted(own))} inside target, not beside it"
            )
        settings["target"] = AdaptiveTarget(**own)
    return settings


def _aimle(solver: Any, **settings) -> AIMLE:
    """AIMLE; the settings of AdaptiveTarget may be given directly."""
    return AIMLE(solver, **_with_target(settings))


def _aimle_covariance(solver: Any, **settings) -> CovarianceAIMLE:
    """AIMLE and the covariance with the losses; the settings of AdaptiveTarget as for aimle."""
    return CovarianceAIMLE(solver, **_with_target(settings))


def _aimle_forward(solver: Any, **settings) -> AIMLE:
    """AIMLE with the forward difference."""
    return _aimle(solver, symmetric_perturbation=False, **settings)


def _aimle_noise(solver: Any, **settings) -> AIMLE:
    """AIMLE with a constant step, as long as the noise."""
    return _aimle(solver, **{"scale": "noise", "alpha_range": (1.0, 1.0), **settings})


def _imle_central(solver: Any, **settings) -> IMLE:
    """IMLE with the central difference."""
    return IMLE(solver, symmetric_perturbation=True, **settings)


_BUILDERS: dict[str, Callable[..., nn.Module]] = {
    "aimle": _aimle,
    "aimle_forward": _aimle_forward,
    "aimle_noise": _aimle_noise,
    "aimle_covariance": _aimle_covariance,
    "imle": IMLE,
    "imle_central": _imle_central,
    "ste": STE,
    "dbb": DBB,
    "identity": Identity,
    "thresholds": Thresholds,
    "sfe": SFE,
    "gumbel_softmax": GumbelSoftmax,
    "softsub": SoftSub,
    "sst": SST,
    "l2x": L2X,
    "dpo": DPO,
    "exact": ExactMarginals,
    "reinmax": ReinMax,
}


def estimators() -> tuple[str, ...]:
    """The names that ``aimle.estimator`` knows."""
    return tuple(_BUILDERS)


def estimator(name: str, solver: Solver | Callable[..., Tensor], **settings) -> nn.Module:
    """The estimator of this name around a solver; settings as in its class.

    For ``aimle`` and its forms the settings of their target may be given directly:
    ``estimator("aimle", solver, target_norm=3.0)``.

    A name that is not known raises a ValueError that suggests the nearest one; a structure to which
    the estimator does not apply raises a TypeError that says to which it does.
    """
    if not isinstance(name, str):
        raise TypeError(
            f"[aimle.estimator] expected the name of an estimator but got {type(name).__name__}"
        )
    if name not in _BUILDERS:
        folded = name.lower().replace("-", "_")
        close = difflib.get_close_matches(folded, _BUILDERS, n=1, cutoff=0.5)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(
            f"[aimle.estimator] expected one of {', '.join(_BUILDERS)} but got {name!r}{hint}"
        )
    return _BUILDERS[name](solver, **settings)
