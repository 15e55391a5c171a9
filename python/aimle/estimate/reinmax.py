"""ReinMax: a second-order straight-through estimator for one of n."""

import torch

from aimle.estimate.sampled import SampledEstimator
from aimle.structures import Argmax


class ReinMax(SampledEstimator):
    """A second-order straight-through estimator: hard samples of softmax(theta).

    Liu, Dong, Liu, Yu, Gao, "Bridging Discrete and Backpropagation: Straight-Through and Beyond",
    NeurIPS 2023. With pi = softmax(theta), z ~ pi, q = (pi + z) / 2, J(p) = diag(p) - p p' and d
    the gradient at z:

        g = (2 J(q) - J(pi) / 2) d

    The mean over z of g is Heun's rule for f along each pair of choices: unbiased for the gradient
    of E f(z) for every quadratic f. No step size, no temperature. The arguments are those of
    ``SampledEstimator``.
    """

    applies_to = (Argmax,)
    _op = torch.ops.aimle.reinmax.default
