"""Gradients through discrete choices.

Layers      AIMLE, IMLE, DBB, STE, Identity; AdaptiveTarget, FixedTarget
Estimators  estimator(name, solver, ...), estimators(); Thresholds
Solvers     Argmax, TopK, SpanningTree, GridPath; solve, Status, symmetrise
Exact       exact.log_partition, .marginals, .covariance, .sample, .structures, .expected,
            .exact_gradient
Noise       Gumbel, SumOfGamma, Normal, Logistic; sample_noise, draw_key
Compat      aimle.compat: the interface of torch-imle and torch-adaptive-imle

Every function here is also an op, ``torch.ops.aimle.<name>``, usable under ``torch.compile``.
"""

from aimle import _library, exact
from aimle.estimate import Thresholds, estimator, estimators
from aimle.functional import draw_key, sample_noise, solve, symmetrise
from aimle.layers import AIMLE, DBB, IMLE, STE, Identity
from aimle.noise import Gumbel, Logistic, Noise, Normal, SumOfGamma
from aimle.perturbed_map import PerturbedMap
from aimle.solvers import Argmax, GridPath, Solver, SpanningTree, TopK
from aimle.status import Status
from aimle.targets import AdaptiveTarget, FixedTarget

__version__ = _library.version

__all__ = [
    "AIMLE",
    "DBB",
    "IMLE",
    "STE",
    "AdaptiveTarget",
    "Argmax",
    "FixedTarget",
    "GridPath",
    "Gumbel",
    "Identity",
    "Logistic",
    "Noise",
    "Normal",
    "PerturbedMap",
    "Solver",
    "SpanningTree",
    "Status",
    "SumOfGamma",
    "Thresholds",
    "TopK",
    "draw_key",
    "estimator",
    "estimators",
    "exact",
    "sample_noise",
    "solve",
    "symmetrise",
]
