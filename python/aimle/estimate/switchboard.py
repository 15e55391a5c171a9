"""Estimators by name: one name, one solver, settings by keyword.

    layer = aimle.estimator("imle", aimle.TopK(k=10), lambda_=10.0, nb_samples=5)

The names are those of the C++ functions, the studies and the command line.
"""

import difflib
from collections.abc import Callable
from typing import Any, Literal, overload

from aimle.estimate.gumbel_rao import GumbelRao
from aimle.estimate.marginal import SST, ExactMarginals
from aimle.estimate.perturbed import DPO
from aimle.estimate.reinmax import ReinMax
from aimle.estimate.relaxed import L2X, GumbelSoftmax, SoftSub
from aimle.estimate.sampled import SampledEstimator
from aimle.estimate.score import SFE, CovarianceAIMLE
from aimle.estimate.thresholds import Thresholds
from aimle.layers import AIMLE, DBB, IMLE, STE, Identity
from aimle.perturbed_map import PerturbedMap
from aimle.settings.checks import check_type
from aimle.settings.shared import AnySolver

#: The return type of ``estimator``: a module whose call returns a tensor.
Estimator = PerturbedMap | SampledEstimator | DPO


def _aimle_forward(solver: Any, **settings: Any) -> AIMLE:
    """AIMLE with the forward difference."""
    return AIMLE(solver, symmetric_perturbation=False, **settings)


def _aimle_noise(solver: Any, **settings: Any) -> AIMLE:
    """AIMLE with a constant step as long as the noise."""
    if settings.get("target") is not None:
        return AIMLE(solver, **settings)
    return AIMLE(solver, **{"scale": "noise", "alpha_range": (1.0, 1.0), **settings})


def _imle_central(solver: Any, **settings: Any) -> IMLE:
    """IMLE with the central difference."""
    return IMLE(solver, symmetric_perturbation=True, **settings)


_BUILDERS: dict[str, Callable[..., Estimator]] = {
    "aimle": AIMLE,
    "aimle_forward": _aimle_forward,
    "aimle_noise": _aimle_noise,
    "aimle_covariance": CovarianceAIMLE,
    "imle": IMLE,
    "imle_central": _imle_central,
    "ste": STE,
    "dbb": DBB,
    "identity": Identity,
    "thresholds": Thresholds,
    "sfe": SFE,
    "gumbel_softmax": GumbelSoftmax,
    "gumbel_rao": GumbelRao,
    "softsub": SoftSub,
    "sst": SST,
    "l2x": L2X,
    "dpo": DPO,
    "exact": ExactMarginals,
    "reinmax": ReinMax,
}


def estimators() -> tuple[str, ...]:
    """The names that ``aimle.estimator`` accepts."""
    return tuple(_BUILDERS)


@overload
def estimator(
    name: Literal["aimle", "aimle_forward", "aimle_noise"], solver: AnySolver, **settings: Any
) -> AIMLE: ...
@overload
def estimator(
    name: Literal["aimle_covariance"], solver: AnySolver, **settings: Any
) -> CovarianceAIMLE: ...
@overload
def estimator(
    name: Literal["imle", "imle_central"], solver: AnySolver, **settings: Any
) -> IMLE: ...
@overload
def estimator(name: Literal["ste"], solver: AnySolver, **settings: Any) -> STE: ...
@overload
def estimator(name: Literal["dbb"], solver: AnySolver, **settings: Any) -> DBB: ...
@overload
def estimator(name: Literal["identity"], solver: AnySolver, **settings: Any) -> Identity: ...
@overload
def estimator(name: Literal["thresholds"], solver: AnySolver, **settings: Any) -> Thresholds: ...
@overload
def estimator(name: Literal["sfe"], solver: AnySolver, **settings: Any) -> SFE: ...
@overload
def estimator(
    name: Literal["gumbel_softmax"], solver: AnySolver, **settings: Any
) -> GumbelSoftmax: ...
@overload
def estimator(name: Literal["gumbel_rao"], solver: AnySolver, **settings: Any) -> GumbelRao: ...
@overload
def estimator(name: Literal["softsub"], solver: AnySolver, **settings: Any) -> SoftSub: ...
@overload
def estimator(name: Literal["sst"], solver: AnySolver, **settings: Any) -> SST: ...
@overload
def estimator(name: Literal["l2x"], solver: AnySolver, **settings: Any) -> L2X: ...
@overload
def estimator(name: Literal["dpo"], solver: AnySolver, **settings: Any) -> DPO: ...
@overload
def estimator(name: Literal["exact"], solver: AnySolver, **settings: Any) -> ExactMarginals: ...
@overload
def estimator(name: Literal["reinmax"], solver: AnySolver, **settings: Any) -> ReinMax: ...
@overload
def estimator(name: str, solver: AnySolver, **settings: Any) -> Estimator: ...


def estimator(name: str, solver: AnySolver, **settings: Any) -> Estimator:
    """The estimator of this name for a solver; settings as in its class.

    ``temperature`` is the scale of the noise, except for the relaxations (gumbel_softmax, softsub,
    sst, l2x), whose noise has scale 1: there it is the temperature of their softmax.

    An unknown name raises a ValueError that suggests the nearest one. A structure to which the
    estimator does not apply raises a TypeError that lists the ones to which it does.
    """
    check_type("estimator", name, str, "the name of an estimator")
    if name not in _BUILDERS:
        folded = name.lower().replace("-", "_")
        close = difflib.get_close_matches(folded, _BUILDERS, n=1, cutoff=0.5)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(
            f"[aimle.estimator] expected one of {', '.join(_BUILDERS)} but got {name!r}{hint}"
        )
    return _BUILDERS[name](solver, **settings)
