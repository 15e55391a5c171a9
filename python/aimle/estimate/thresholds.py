"""Thresholds: gradients of many structures from one solve, without a step size.

With all noise fixed except that of entry j, the solution depends on entry j only through a
threshold t_j: above it the solution is z+, which contains j, and below it z-, which does not. With
density p and distribution function F of the noise, temperature tau and u = (t_j - theta_j) / tau,

    first order  g_j = p(u) <d, z+ - z-> / tau
    trapezoid    g_j = 1/2 w <d, z+ - z-> / tau,   w = p/(1 - F) if j is in, p/F if it is out

minus the mean over j if all solutions have the same size. The trapezoid is unbiased for the
gradient of E f(z) for every quadratic f, the first order for linear f. For argmax with Gumbel noise
the expectation of the trapezoid over the noise is ReinMax (Liu et al., NeurIPS 2023). See
aimle/estimate/thresholds.h.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor
from typing_extensions import Unpack

from aimle.noise import Gumbel, Logistic, Normal
from aimle.perturbed_map import _ALL_STATS, _THRESHOLD_STATS, PerturbedMap, one_temperature
from aimle.settings.defaults import noise_for
from aimle.settings.shared import NoiseSettings
from aimle.solvers import Solver, check_solver
from aimle.targets import ThresholdTarget


class Thresholds(PerturbedMap):
    """Compares the solutions with and without each entry, weighted by the noise's density at the
    threshold between them.

    No lambda, no state, and no solve in backward. For ``Argmax``, ``TopK``, ``SpanningTree``,
    ``Bernoulli``, ``Chain``, ``LatticePath`` and ``LatticeMoves`` under Gumbel, Logistic or Normal
    noise.

    Args:
        order: "trapezoid" or "first".
        max_weight: larger weights (p/F, p/(1 - F); "first": p) are capped at it. The cap is a bias,
            which ``stats()`` measures. With these noises no weight exceeds 24, so it only matters
            if it is set lower, to trade bias for variance.
    The other arguments are those of ``AIMLE``. In eval mode the solution is noise-free, and its
    gradient, if requested, is that of the first order.
    """

    def __init__(
        self,
        solver: Solver,
        *,
        order: Literal["trapezoid", "first"] = "trapezoid",
        max_weight: float = 20.0,
        **settings: Unpack[NoiseSettings],
    ) -> None:
        check_solver("Thresholds", solver)
        if not getattr(solver, "has_thresholds", False):
            raise TypeError(
                "[aimle.Thresholds] applies to solvers such as Argmax, TopK, SpanningTree and "
                "Chain, which provide the thresholds of their entries, but got "
                f"{type(solver).__name__}; AIMLE and IMLE take it"
            )
        noise = noise_for(solver, None, settings["noise"])
        if not isinstance(noise, Gumbel | Logistic | Normal):
            raise ValueError(
                "[aimle.Thresholds] expected a noise with a density in closed form, Gumbel, "
                f"Logistic or Normal, but got {noise}"
            )
        one_temperature("Thresholds", settings, positive=True)
        target = ThresholdTarget(noise.name, order, max_weight)
        super().__init__(solver, difference="thresholds", target=target, **settings)

    def stats(self) -> dict[str, Tensor]:
        """Statistics of the last backward pass, on the layer's device, without a host sync.

        zero_share: share of zeros in the gradient of theta.
        capped_share: share of the weights that were capped at max_weight.
        capped_mass: share of the sum of w |<d, z+ - z->| lost to the cap, which bounds the bias.
        NaN before the first backward pass.
        """
        seen = dict(zip(_ALL_STATS, self.layer_stats.clone().unbind(), strict=True))
        return {name: seen[name] for name in ("zero_share", *_THRESHOLD_STATS)}
