"""The interface of the authors' packages, torch-imle and torch-adaptive-imle, on this library.

Code written for them runs with its imports changed:

    from imle.aimle import aimle                       from aimle.compat.aimle import aimle
    from imle.imle import imle                         from aimle.compat.imle import imle
    from imle.wrapper import imle   (torch-imle)       from aimle.compat.imle import imle
    from imle.ste import ste                           from aimle.compat.ste import ste
    from imle.target import ...                        from aimle.compat.target import ...
    from imle.noise import ...                         from aimle.compat.noise import ...
    from imle.solvers import ...                       from aimle.compat.solvers import ...

or, all from one place, ``from aimle.compat import aimle, imle, ste, TargetDistribution, ...``.

Their conventions apply too: theta [B, *instance] gives z [B S M, *instance], example-major; losses
are summed over samples and the gradient of theta is averaged over them; a fixed step divides by
lambda only on request; noise is always on. Bugs in their code are fixed by default;
``reference=True`` of ``aimle`` and ``imle`` restores them, so that an old result can be reproduced
from its seed:

    ============================  =============================  ==================================
    what                          here                           with reference=True, as theirs
    ============================  =============================  ==================================
    lambda of an adaptive target  one per example: alpha times   one per batch: alpha times the
                                  the mean over its samples of   ratio of the norms of all theta
                                  ||theta|| / ||dy||             and all dy
    division by lambda            by the lambda stepped with     by lambda / sqrt(S M): gradients 1,
                                                                 2, 4, 8 times too large for S = 1,
                                                                 4, 16, 64
    beta is raised                while grad_norm <= target      while grad_norm < target
    samples with a zero gradient  do not count                   count as unchanged: beta grows by a
                                                                 step a pass if all are zero
    draws of our noise classes    keyed, repeated in backward,   those of torch.distributions, as
                                  nothing stored; subtracted     from ``sample``; stored; added
                                  from costs                     whatever the sense
    ============================  =============================  ==================================

Fixed in both: extra arguments of a call reach the solver, in forward and in backward; theta and dy
need not be contiguous; the forward difference of ``aimle`` takes two solver calls, not three, if
the third would give z again (equal temperatures, alpha = 1); a NaN in dy reaches theta's gradient
and does not change the state; the adaptive state can be saved
(``AdaptiveTargetDistribution.state_dict``), and its grad_norm is float64 instead of float32;
``select_k`` and ``mathias_select_k`` choose exactly k entries, even with ties.
"""

from aimle.compat.aimle import aimle
from aimle.compat.imle import imle
from aimle.compat.noise import (
    BaseNoiseDistribution,
    GumbelNoiseDistribution,
    SumOfGammaNoiseDistribution,
)
from aimle.compat.solvers import mathias_select_k, select_k
from aimle.compat.ste import ste
from aimle.compat.target import (
    AdaptiveTargetDistribution,
    BaseTargetDistribution,
    TargetDistribution,
)

__all__ = [
    "AdaptiveTargetDistribution",
    "BaseNoiseDistribution",
    "BaseTargetDistribution",
    "GumbelNoiseDistribution",
    "SumOfGammaNoiseDistribution",
    "TargetDistribution",
    "aimle",
    "imle",
    "mathias_select_k",
    "select_k",
    "ste",
]
