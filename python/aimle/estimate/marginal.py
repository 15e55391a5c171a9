"""Estimators that differentiate the exact marginals mu(theta) = E z of ``aimle.exact``."""

import torch

from aimle.estimate.relaxed import Relaxation
from aimle.estimate.sampled import SampledEstimator

_ops = torch.ops.aimle


class ExactMarginals(SampledEstimator):
    """Hard samples z ~ p(z) = exp(<theta, z> - A(theta)) with the Jacobian of the exact marginals,
    which is Cov(z): g = Cov(z) d.

    For k of n this is SIMPLE (Ahmed, Zeng, Niepert, Van den Broeck, "SIMPLE: A Gradient Estimator
    for k-Subset Sampling", ICLR 2023). Exact for linear losses, whatever was drawn; biased
    otherwise. The arguments are those of ``SampledEstimator``.
    """

    _op = _ops.exact.default


class SST(Relaxation):
    """The exact marginals of perturbed scores, mu((theta + G) / t), as a soft sample; G is Gumbel
    noise.

    Stochastic softmax tricks: Paulus, Choi, Tarlow, Krause, Maddison, NeurIPS 2020. For one of n
    this is Gumbel-Softmax. The arguments are those of ``Relaxation``.
    """

    _op = _ops.sst.default
