"""Gumbel-Rao: straight-through Gumbel-Softmax with a lower variance."""

from __future__ import annotations

from typing import Any

import torch
from typing_extensions import Unpack

from aimle.estimate.relaxed import Relaxation
from aimle.settings.checks import check_int
from aimle.settings.shared import SampleSettings
from aimle.solvers import Solver
from aimle.structures import Argmax


class GumbelRao(Relaxation):
    """Straight-through Gumbel-Softmax, averaged over the noise that gives the same choice.

    Paulus, Maddison, Krause, "Rao-Blackwellizing the Straight-Through Gumbel-Softmax Gradient
    Estimator", ICLR 2021. With z = argmax(theta + G), J(p) = diag(p) - p p' and d the gradient at
    z:

        g = E[ J(softmax((theta + G) / t)) | z ] d / t

    z is hard, and d depends on G only through z: the average has the mean of the straight-through
    gradient and a lower variance, and needs no further call of the loss. The mean over ``draws`` of
    the noise given z replaces the expectation. Biased, less so for a smaller temperature t, which
    has a higher variance.

    Args:
        temperature: t > 0, as in ``Relaxation``; ``aimle.anneal`` lowers it during training.
        draws: draws of the noise given z, over which the gradient is averaged. They need memory and
            time for draws * S numbers per entry, which is little next to most losses.
    The other arguments are those of ``SampledEstimator``.
    """

    applies_to = (Argmax,)
    _op = torch.ops.aimle.gumbel_rao.default

    def __init__(
        self,
        solver: Solver,
        *,
        temperature: float = 1.0,
        draws: int = 8,
        **settings: Unpack[SampleSettings],
    ) -> None:
        super().__init__(solver, temperature=temperature, hard=True, **settings)
        self.draws = check_int("GumbelRao", "draws", draws, 1)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, draws={self.draws}"

    def _relaxation(self) -> tuple[Any, ...]:
        return *super()._relaxation(), self.draws
