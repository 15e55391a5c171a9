"""The estimators by name: ``aimle.estimator(name, solver, **settings)``.

Every one is a module ``theta -> z`` with the shapes of the layers (``aimle.layers``), so that one
can take another's place in a model and in a study. One file per family.
"""

from aimle.estimate.switchboard import estimator, estimators
from aimle.estimate.thresholds import Thresholds

__all__ = ["Thresholds", "estimator", "estimators"]
