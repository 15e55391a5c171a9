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

The conventions are theirs too: theta [B, *instance] gives z [B S M, *instance], example-major;
losses are summed over samples and the gradient of theta is averaged over them; a fixed step divides
by lambda only if asked to; noise is always on. What their code computes by mistake is mended, and
``reference=True`` of ``aimle`` and ``imle`` brings it back, so that an old result can be repeated
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

Mended in both: extra arguments of a call reach the solver, in forward and in backward; theta and dy
need not be contiguous; the forward difference of ``aimle`` takes two solver calls, not three, where
the third would give z again (equal temperatures, alpha = 1); a NaN in dy reaches theta's gradient
and leaves the state alone; the adaptive state is saved (``AdaptiveTargetDistribution.state_dict``),
and its grad_norm is kept in float64 where theirs is float32; ``select_k`` and ``mathias_select_k``
choose exactly k entries, also among ties.
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
