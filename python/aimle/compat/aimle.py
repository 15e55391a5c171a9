"""Adaptive implicit MLE: ``aimle``, as a function or a decorator."""

from collections.abc import Callable

from torch import Tensor

from aimle.compat._estimator import Differentiable, usable_as_decorator, wrap
from aimle.compat.noise import BaseNoiseDistribution
from aimle.compat.target import BaseTargetDistribution, TargetDistribution
from aimle.settings.checks import check_bool


@usable_as_decorator
def aimle(
    function: Callable[..., Tensor] | None = None,
    target_distribution: BaseTargetDistribution | None = None,
    noise_distribution: BaseNoiseDistribution | None = None,
    nb_samples: int = 1,
    nb_marginal_samples: int = 1,
    theta_noise_temperature: float = 1.0,
    target_noise_temperature: float = 1.0,
    symmetric_perturbation: bool = False,
    _is_minimization: bool = False,
    *,
    reference: bool = False,
) -> Differentiable[...]:
    """A solver with a gradient: the difference of solutions on both sides of theta.

    Minervini, Franceschi, Niepert, "Adaptive Perturbation-Based Gradient Estimation for Discrete
    Latent Variable Models", AAAI 2023.

        target_distribution = AdaptiveTargetDistribution(initial_beta=0.0, beta_update_step=1e-3)

        @aimle(target_distribution=target_distribution, noise_distribution=noise, nb_samples=10)
        def choose(weights: Tensor) -> Tensor:
            return select_k(weights, k=10)

        z = choose(theta)                       # theta [B, n] -> z [10 B, n]
        loss(z).sum().div(len(theta)).backward()

    Args:
        function: the solver, from weights [N, *instance] to solutions of the same shape. Extra
            arguments of a call are passed to it unchanged, in backward too.
        target_distribution: how far backward steps; None means TargetDistribution().
        noise_distribution: None means no noise.
        nb_samples: S, noise samples per example.
        nb_marginal_samples: M; solutions are averaged over M samples before their difference is
            taken. The gradient is that of S M samples; changes are counted on the averages.
        theta_noise_temperature: scale of the noise in forward.
        target_noise_temperature: scale of the same noise in backward.
        symmetric_perturbation: central difference (three solver calls in total) instead of forward
            difference (two, or three if the temperatures differ or alpha is not 1).
        _is_minimization: the function minimises; theta is a cost.
        reference: compute exactly as the authors' code does; see ``aimle.compat``.

    Returns:
        A function from theta [B, *instance] (and the solver's extra arguments) to z
        [B S M, *instance]. Sum the losses over samples; the gradient is their mean.
    """
    symmetric = check_bool("compat", "symmetric_perturbation", symmetric_perturbation)
    return wrap(
        function,
        difference="central" if symmetric else "forward",
        target=TargetDistribution() if target_distribution is None else target_distribution,
        noise=noise_distribution,
        nb_samples=nb_samples,
        nb_marginal_samples=nb_marginal_samples,
        theta_noise_temperature=theta_noise_temperature,
        target_noise_temperature=target_noise_temperature,
        minimises=_is_minimization,
        reference=reference,
    )
