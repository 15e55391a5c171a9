"""The estimators by name: ``aimle.estimator(name, solver, **settings)``.

Each one is a module ``theta -> z`` with the shapes of the layers (``aimle.layers``), so estimators
are interchangeable in a model and in a study. One file per family.
"""

from aimle.estimate.gumbel_rao import GumbelRao
from aimle.estimate.marginal import SST, ExactMarginals
from aimle.estimate.perturbed import DPO, perturbed_fenchel_young_loss
from aimle.estimate.reinmax import ReinMax
from aimle.estimate.relaxed import L2X, GumbelSoftmax, SoftSub, anneal
from aimle.estimate.score import SFE, CovarianceAIMLE
from aimle.estimate.spo_plus import spo_plus_loss
from aimle.estimate.switchboard import estimator, estimators
from aimle.estimate.thresholds import Thresholds

__all__ = [
    "DPO",
    "L2X",
    "SFE",
    "SST",
    "CovarianceAIMLE",
    "ExactMarginals",
    "GumbelRao",
    "GumbelSoftmax",
    "ReinMax",
    "SoftSub",
    "Thresholds",
    "anneal",
    "estimator",
    "estimators",
    "perturbed_fenchel_young_loss",
    "spo_plus_loss",
]
