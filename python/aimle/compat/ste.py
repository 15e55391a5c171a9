"""The straight-through estimator: ``ste``, as a function or a decorator."""

from collections.abc import Callable

from torch import Tensor

from aimle.compat._estimator import Differentiable, usable_as_decorator, wrap
from aimle.compat.noise import BaseNoiseDistribution
from aimle.compat.target import TargetDistribution


@usable_as_decorator
def ste(
    function: Callable[..., Tensor] | None = None,
    noise_distribution: BaseNoiseDistribution | None = None,
    noise_temperature: float = 1.0,
    nb_samples: int = 1,
    *,
    reference: bool = False,
) -> Differentiable[...]:
    """A solver with the identity as its gradient (Bengio, Leonard, Courville, 2013).

    theta [B, *instance] -> z [B S, *instance]; the gradient of theta is the mean of dy over the S
    samples. The arguments are those of ``aimle``; reference=True draws the noise with ``sample``.
    """
    return wrap(
        function,
        difference="straight_through",
        target=TargetDistribution(),
        noise=noise_distribution,
        nb_samples=nb_samples,
        theta_noise_temperature=noise_temperature,
        target_noise_temperature=noise_temperature,
        reference=reference,
    )
