"""Estimators that differentiate exact marginals.

    exact  hard samples z ~ p(z) = exp(<theta, z> - A(theta)) with the Jacobian of the marginals
           mu(theta) = E z, which is Cov(z): g = Cov(z) d. For k of n that is what Ahmed, Zeng,
           Niepert, Van den Broeck, "SIMPLE: A Gradient Estimator for k-Subset Sampling", ICLR 2023,
           do. Exact for linear f, whatever z was drawn; biased otherwise.
    sst    stochastic softmax tricks (Paulus, Choi, Tarlow, Krause, Maddison, NeurIPS 2020): the
           soft sample mu((theta + G) / t), G Gumbel noise. With ``hard`` the solution of theta + G
           is shown instead, straight-through. For one of n this is Gumbel-Softmax.

Both apply to the structures of ``aimle.exact``.
"""

from __future__ import annotations

from torch import Tensor

from aimle import exact
from aimle.estimate.directions import fold, spread, vertices_of
from aimle.estimate.relaxed import Relaxation
from aimle.estimate.sampled import SampledEstimator, per_sample, straight_through
from aimle.exact import _CLOSED_FORM


class ExactMarginals(SampledEstimator):
    """Exact hard samples with the Jacobian of the exact marginals: g = Cov(z) d.

    For k of n that is SIMPLE (Ahmed, Zeng, Niepert, Van den Broeck, ICLR 2023). Exact for linear
    losses, whatever was drawn; biased otherwise. The arguments are those of ``SampledEstimator``.
    """

    applies_to = _CLOSED_FORM

    def _samples(self, scores: Tensor, k: Tensor | int | None, key: Tensor | None) -> Tensor:
        soft = exact.marginals(self.solver, scores, k=k).unsqueeze(-2)
        fixed = scores.detach()
        if self.noisy:
            z = exact.sample(self.solver, fixed, self._key(scores, key), self.nb_samples, k=k)
        else:
            z = self._solved(fixed.unsqueeze(-2), k)
        return straight_through(z, soft)


class SST(Relaxation):
    """The exact marginals of perturbed scores, mu((theta + G) / t), as a soft sample.

    Paulus, Choi, Tarlow, Krause, Maddison, NeurIPS 2020. The arguments are those of ``Relaxation``.
    """

    applies_to = _CLOSED_FORM

    def _samples(self, scores: Tensor, k: Tensor | int | None, key: Tensor | None) -> Tensor:
        vertices = vertices_of(self.solver, scores)
        x = self._perturbed(fold(scores, vertices), key)
        soft = exact.marginals(self.solver, x / self.temperature, k=per_sample(k))
        return spread(self._shown(x, soft, k), vertices)
