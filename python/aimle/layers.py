"""The named layers: compositions of a target and a difference over ``PerturbedMap``.

    AIMLE     adaptive target, central or forward difference
    IMLE      fixed target, forward or central difference
    DBB       fixed target, forward difference, no noise
    STE       straight through
    Identity  straight through, no noise, after a projection

What they take and return is said in ``aimle.perturbed_map``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Generator, Tensor

from aimle._settings import check_choice, check_mask, check_theta
from aimle.noise import Noise
from aimle.perturbed_map import Output, PerturbedMap, Sense
from aimle.solvers import Solver
from aimle.targets import AdaptiveTarget, FixedTarget, Rule, Scale, Scope, Target


def target_of(owner: str, target: object, **settings: Any) -> Target:
    """The target given, or an AdaptiveTarget of the settings that are not None."""
    given = {name: value for name, value in settings.items() if value is not None}
    if target is None:
        return AdaptiveTarget(**given)
    if not isinstance(target, AdaptiveTarget | FixedTarget):
        raise TypeError(
            f"[aimle.{owner}] expected target to be an aimle.AdaptiveTarget or aimle.FixedTarget "
            f"but got {type(target).__name__}"
        )
    if given:
        raise TypeError(
            f"[aimle.{owner}] expected target or its settings but got both target and "
            f"{', '.join(given)}: give {', '.join(given)} to the target"
        )
    return target


def difference_of(solver: object, symmetric: bool | None) -> Literal["central", "forward"]:
    """The difference asked for, or the solver's own."""
    if symmetric is None:
        symmetric = getattr(solver, "symmetric_perturbation", True)
    return "central" if symmetric else "forward"


class AIMLE(PerturbedMap):
    """Adaptive IMLE: a difference of solutions with a step size that tunes itself.

    Minervini, Franceschi, Niepert, "Adaptive Perturbation-Based Gradient Estimation for Discrete
    Latent Variable Models", AAAI 2023.

    Args:
        solver: a native solver such as ``aimle.TopK(k=10)``, or a callable (see PerturbedMap).
        noise: an ``aimle`` noise, its name, None for no noise, or "auto": Gumbel, but Normal where
            solutions vary in size (``GridPath``).
        nb_samples: S, the number of noise samples per example.
        symmetric_perturbation: True for the central difference (three solves per sample in all),
            False for the forward difference (two). None means central, but forward for GridPath,
            where a step to the other side would push costs below zero, at which they are clipped.
        temperature: scale of the noise in forward; None means 1, or 0.3 where solutions vary in
            size, which suits costs of order one. ``theta_noise_temperature`` is another name of it.
        target_noise_temperature: in backward; None means the same.
        target: an AdaptiveTarget, or instead its settings one by one, as in
            ``AIMLE(solver, target_norm=3.0)``: initial_alpha, step, target_norm, decay, scope,
            scale, rule, factor, alpha_range, momentum, initial_gbar; None is AdaptiveTarget's own.
        sense: "max" or "min" (theta is a cost); None is the solver's own.
        output: "samples", "flat" or "mean".
        noise_in_eval: keep the noise and S in eval mode.
        generator: draws the keys instead of PyTorch's default one.
    """

    def __init__(
        self,
        solver: Solver | Callable[..., Tensor],
        *,
        noise: Noise | str | None = "auto",
        nb_samples: int = 1,
        symmetric_perturbation: bool | None = None,
        temperature: float | None = None,
        theta_noise_temperature: float | None = None,
        target_noise_temperature: float | None = None,
        target: Target | None = None,
        initial_alpha: float | None = None,
        step: float | None = None,
        target_norm: float | None = None,
        decay: float | None = None,
        scope: Scope | None = None,
        scale: Scale | None = None,
        rule: Rule | None = None,
        factor: float | None = None,
        alpha_range: tuple[float, float] | None = None,
        momentum: float | None = None,
        initial_gbar: float | None = None,
        sense: Sense | None = None,
        output: Output = "samples",
        noise_in_eval: bool = False,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(
            solver,
            difference=difference_of(solver, symmetric_perturbation),
            target=target_of(
                type(self).__name__,
                target,
                initial_alpha=initial_alpha,
                step=step,
                target_norm=target_norm,
                decay=decay,
                scope=scope,
                scale=scale,
                rule=rule,
                factor=factor,
                alpha_range=alpha_range,
                momentum=momentum,
                initial_gbar=initial_gbar,
            ),
            noise=noise,
            nb_samples=nb_samples,
            temperature=temperature,
            theta_noise_temperature=theta_noise_temperature,
            target_noise_temperature=target_noise_temperature,
            sense=sense,
            output=output,
            noise_in_eval=noise_in_eval,
            generator=generator,
        )


class IMLE(PerturbedMap):
    """Implicit MLE: a difference of solutions with a fixed step size.

    Niepert, Minervini, Franceschi, "Implicit MLE: Backpropagating Through Discrete Exponential
    Family Distributions", NeurIPS 2021. The forward difference is that paper's, hence the default
    here. The gradient is always divided by lambda.

    lambda is in units of the gradient that arrives, so it depends on the scale of the loss: a mean
    instead of a sum, or ``torch.amp.GradScaler``, changes the step and with it the gradient. With
    ``target=AdaptiveTarget.constant(alpha)`` the step does not depend on that scale.

    Args:
        lambda_: the step size (see FixedTarget); 1 if neither it nor a target is given.
        target: ``FixedTarget(lambda_)``, which is the same, or another target.
    The other arguments are those of ``AIMLE``.
    """

    def __init__(
        self,
        solver: Solver | Callable[..., Tensor],
        lambda_: float | None = None,
        *,
        noise: Noise | str | None = "auto",
        nb_samples: int = 1,
        symmetric_perturbation: bool = False,
        temperature: float | None = None,
        theta_noise_temperature: float | None = None,
        target_noise_temperature: float | None = None,
        target: Target | None = None,
        sense: Sense | None = None,
        output: Output = "samples",
        noise_in_eval: bool = False,
        generator: Generator | None = None,
    ) -> None:
        owner = type(self).__name__
        if lambda_ is not None and target is not None:
            raise TypeError(f"[aimle.{owner}] takes lambda_ or target but got both")
        if target is None:
            target = FixedTarget(1.0 if lambda_ is None else lambda_)
        super().__init__(
            solver,
            difference=difference_of(solver, symmetric_perturbation),
            target=target_of(owner, target),
            noise=noise,
            nb_samples=nb_samples,
            temperature=temperature,
            theta_noise_temperature=theta_noise_temperature,
            target_noise_temperature=target_noise_temperature,
            sense=sense,
            output=output,
            noise_in_eval=noise_in_eval,
            generator=generator,
        )


class DBB(PerturbedMap):
    """Blackbox differentiation: the forward difference of noise-free solutions.

    Vlastelica, Paulus, Musil, Martius, Rolinek, "Differentiation of Blackbox Combinatorial
    Solvers", ICLR 2020.

    lambda is in units of the gradient that arrives, so it depends on the scale of the loss: a mean
    instead of a sum, or ``torch.amp.GradScaler``, changes the step and with it the gradient.
    ``IMLE(solver, target=AdaptiveTarget.constant(alpha), noise=None)`` is this layer with a step
    that does not depend on that scale.
    """

    def __init__(
        self,
        solver: Solver | Callable[..., Tensor],
        lambda_: float = 1.0,
        *,
        sense: Sense | None = None,
        output: Output = "mean",
    ) -> None:
        super().__init__(
            solver,
            difference="forward",
            target=FixedTarget(lambda_),
            noise=None,
            sense=sense,
            output=output,
        )


class STE(PerturbedMap):
    """Perturbed straight-through: the gradient of z is passed on to theta as it is.

    Bengio, Leonard, Courville, 2013. Under sense="min" with its sign changed. The arguments are
    those of ``AIMLE``.
    """

    def __init__(
        self,
        solver: Solver | Callable[..., Tensor],
        *,
        noise: Noise | str | None = "auto",
        nb_samples: int = 1,
        temperature: float | None = None,
        theta_noise_temperature: float | None = None,
        sense: Sense | None = None,
        output: Output = "samples",
        noise_in_eval: bool = False,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(
            solver,
            difference="straight_through",
            target=FixedTarget(0.0),
            noise=noise,
            nb_samples=nb_samples,
            temperature=temperature,
            theta_noise_temperature=theta_noise_temperature,
            sense=sense,
            output=output,
            noise_in_eval=noise_in_eval,
            generator=generator,
        )


class Identity(PerturbedMap):
    """The identity as the solver's Jacobian, after a projection that removes what cannot matter.

    Sahoo, Paulus, Vlastelica, Musil, Kuleshov, Martius, "Backpropagation through Combinatorial
    Algorithms: Identity with Projection Works", ICLR 2023. theta is projected before the solver:
    "mean" subtracts its mean, "norm" divides by its norm, "std" does both, None neither; each over
    the unmasked entries of an instance.
    """

    def __init__(
        self,
        solver: Solver | Callable[..., Tensor],
        *,
        projection: Literal["std", "mean", "norm"] | None = "std",
        noise: Noise | str | None = None,
        nb_samples: int = 1,
        temperature: float | None = None,
        theta_noise_temperature: float | None = None,
        sense: Sense | None = None,
        output: Output = "mean",
        noise_in_eval: bool = False,
        generator: Generator | None = None,
    ) -> None:
        check_choice("Identity", "projection", projection, ("std", "mean", "norm", None))
        super().__init__(
            solver,
            difference="straight_through",
            target=FixedTarget(0.0),
            noise=noise,
            nb_samples=nb_samples,
            temperature=temperature,
            theta_noise_temperature=theta_noise_temperature,
            sense=sense,
            output=output,
            noise_in_eval=noise_in_eval,
            generator=generator,
        )
        self.projection = projection

    def forward(self, theta: Tensor, *args, mask: Tensor | None = None, **kwargs) -> Tensor:
        """As for the other layers."""
        check_theta(type(self).__name__, theta)
        if mask is not None:
            check_mask(type(self).__name__, mask, theta)
        count = getattr(self.solver, "instance_dims", theta.dim() - 1)
        name = "none" if self.projection is None else self.projection
        projected = torch.ops.aimle.project.default(theta, name, count, mask)
        return super().forward(projected, *args, mask=mask, **kwargs)
