"""Implicit MLE: ``imle``, as a function or a decorator."""

from collections.abc import Callable

from torch import Tensor

from aimle.compat._estimator import Differentiable, usable_as_decorator, wrap
from aimle.compat.noise import BaseNoiseDistribution
from aimle.compat.target import BaseTargetDistribution, TargetDistribution


@usable_as_decorator
def imle(
    function: Callable[..., Tensor] | None = None,
    target_distribution: BaseTargetDistribution | None = None,
    noise_distribution: BaseNoiseDistribution | None = None,
    nb_samples: int = 1,
    nb_marginal_samples: int = 1,
    theta_noise_temperature: float = 1.0,
    target_noise_temperature: float = 1.0,
    _gradient_save_path: str | None = None,
    _is_minimization: bool = False,
    *,
    input_noise_temperature: float | None = None,
    reference: bool = False,
) -> Differentiable[...]:
    """A solver with a gradient: the difference to the solution after a step against the gradient.

    Niepert, Minervini, Franceschi, "Implicit MLE: Backpropagating Through Discrete Exponential
    Family Distributions", NeurIPS 2021.

    The difference is always taken from the z of the forward pass, even if the temperatures differ
    or alpha is not 1 (where ``aimle`` solves again). Otherwise this is ``aimle`` with
    symmetric_perturbation=False, and takes the same arguments.

    Args:
        _gradient_save_path: a file to which every backward pass writes the gradient of each sample,
            [B, S, *instance], with numpy.save.
        input_noise_temperature: torch-imle's name for theta_noise_temperature.
    """
    temperature = input_noise_temperature
    return wrap(
        function,
        difference="forward",
        target=TargetDistribution() if target_distribution is None else target_distribution,
        noise=noise_distribution,
        nb_samples=nb_samples,
        nb_marginal_samples=nb_marginal_samples,
        theta_noise_temperature=theta_noise_temperature if temperature is None else temperature,
        target_noise_temperature=target_noise_temperature,
        minimises=_is_minimization,
        reuses_solution=True,
        reference=reference,
        gradient_save_path=_gradient_save_path,
    )
