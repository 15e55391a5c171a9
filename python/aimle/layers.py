"""The named layers: compositions of a target and a difference over ``PerturbedMap``.

    AIMLE     adaptive target, central or forward difference
    IMLE      fixed target, forward or central difference
    DBB       fixed target, forward difference, no noise
    STE       straight through
    Identity  straight through, no noise, after a projection

``aimle.perturbed_map`` documents their inputs and outputs.
"""

from __future__ import annotations

from typing import Any, Literal, cast

import torch
from torch import Tensor
from typing_extensions import Unpack

from aimle.perturbed_map import PerturbedMap
from aimle.settings.checks import (
    check_batch,
    check_choice,
    check_mask,
    check_theta,
    check_type,
    instance_dims_of,
)
from aimle.settings.defaults import difference_for
from aimle.settings.shared import (
    DEFAULTS,
    AdaptiveSettings,
    AnySolver,
    NoiseSettings,
    Output,
    Sense,
    StepSettings,
    TargetSettings,
)
from aimle.targets import AdaptiveTarget, FixedTarget, Target


def check_target(owner: str, target: object) -> None:
    """Raises TypeError unless target is one of those that have a step."""
    expected = "target to be an aimle.AdaptiveTarget or aimle.FixedTarget"
    check_type(owner, target, AdaptiveTarget | FixedTarget, expected)


def split_target(owner: str, settings: AdaptiveSettings) -> tuple[Target, StepSettings]:
    """The given target, or an AdaptiveTarget from its settings; and the remaining settings."""
    others: dict[str, Any] = dict(settings)
    own = {name: others.pop(name) for name in TargetSettings.__annotations__}
    target = own.pop("target")
    given = {name: value for name, value in own.items() if value is not None}
    if target is None:
        target = AdaptiveTarget(**given)
    elif given:
        raise TypeError(
            f"[aimle.{owner}] expected target or its settings but got both target and "
            f"{', '.join(given)}: give {', '.join(given)} to the target"
        )
    check_target(owner, target)
    return target, cast("StepSettings", others)


class AIMLE(PerturbedMap):
    """Adaptive IMLE: a difference of solutions with an adaptive step size.

    Minervini, Franceschi, Niepert, "Adaptive Perturbation-Based Gradient Estimation for Discrete
    Latent Variable Models", AAAI 2023.

    Args:
        solver: a native solver such as ``aimle.TopK(k=10)``, or a callable (see PerturbedMap).
        noise: an ``aimle`` noise, its name, None for no noise, or "auto": Gumbel, except Logistic
            for ``Bernoulli``, and Normal for paths, lattices, ``Knapsack`` and callables whose
            solutions vary in size (``fixed_size = False``).
        nb_samples: S, the number of noise samples per example.
        symmetric_perturbation: True for the central difference (three solves per sample in total),
            False for the forward difference (two). None means central, except forward for costs:
            ``GridPath``, ``GraphPath`` and callables that minimise.
        temperature: scale of the noise in forward; None means 1, or 0.3 for the solvers whose
            default noise is Normal, which suits scores and costs of order one.
            ``theta_noise_temperature`` is an alias.
        target_noise_temperature: scale of the noise in backward; None means the same as in forward.
        target: an AdaptiveTarget, or instead its settings one by one, as in
            ``AIMLE(solver, target_norm=3.0)``: initial_alpha, step, target_norm, decay, scope,
            scale, rule, factor, alpha_range, momentum, initial_gbar; None means AdaptiveTarget's
            default.
        sense: "max" or "min" (theta is a cost); None means the solver's own.
        output: "samples", "flat" or "mean".
        noise_in_eval: keep the noise and S in eval mode.
        generator: draws the keys instead of PyTorch's default generator.
        process_group: the processes that update the adaptive state together, from the counts of all
            of them (docs/guide/distributed.md). "auto": those of DDP or FSDP if the layer is in
            such a model, otherwise this process alone. None: this process alone. Or a
            ``torch.distributed.ProcessGroup``.
        instance_dims: for a callable, the number of trailing dimensions of theta per instance; None
            means its attribute of this name, or all but the first.
        fractional: for a callable, whether solutions need not be whole numbers; None means its
            attribute ``fractional``, or False. If False, such a solution raises an error; on a GPU
            or in compiled code it becomes a row of NaN.
        repeat_arguments: for a callable, whether tensors, arrays and lists among the extra
            arguments have one entry per example, [*batch, ...]. The layer then repeats the entries
            for its samples and, as with the rows of scores, leaves some out in backward if
            possible.
    """

    _notes = dict.fromkeys(
        ("lambda_", "lambd", "lam"), "its step is adaptive: for a fixed one use aimle.IMLE"
    )

    def __init__(
        self,
        solver: AnySolver,
        *,
        symmetric_perturbation: bool | None = None,
        **settings: Unpack[AdaptiveSettings],
    ) -> None:
        target, others = split_target(type(self).__name__, settings)
        owner = type(self).__name__
        difference = difference_for(owner, solver, settings["sense"], symmetric_perturbation)
        super().__init__(solver, difference=difference, target=target, **others)


class IMLE(PerturbedMap):
    """Implicit MLE: a difference of solutions with a fixed step size.

    Niepert, Minervini, Franceschi, "Implicit MLE: Backpropagating Through Discrete Exponential
    Family Distributions", NeurIPS 2021. The forward difference is the default, as in that paper.
    The gradient is always divided by lambda.

    lambda is in units of the incoming gradient, so it depends on the scale of the loss: taking a
    mean instead of a sum, or using ``torch.amp.GradScaler``, changes the step and with it the
    gradient. With ``target=AdaptiveTarget.constant(alpha)`` the step does not depend on that scale.

    Args:
        lambda_: the step size (see FixedTarget); 1 if neither lambda_ nor target is given.
        target: ``FixedTarget(lambda_)``, which is equivalent to lambda_, or another target.
    The other arguments are those of ``AIMLE``.
    """

    def __init__(
        self,
        solver: AnySolver,
        lambda_: float | None = None,
        *,
        target: Target | None = None,
        symmetric_perturbation: bool = False,
        **settings: Unpack[StepSettings],
    ) -> None:
        owner = type(self).__name__
        if lambda_ is not None and target is not None:
            raise TypeError(f"[aimle.{owner}] expected lambda_ or target but got both")
        if target is None:
            target = FixedTarget(1.0 if lambda_ is None else lambda_)
        check_target(owner, target)
        difference = difference_for(owner, solver, settings["sense"], symmetric_perturbation)
        super().__init__(solver, difference=difference, target=target, **settings)


class DBB(PerturbedMap):
    """Blackbox differentiation: the forward difference of noise-free solutions.

    Vlastelica, Paulus, Musil, Martius, Rolinek, "Differentiation of Blackbox Combinatorial
    Solvers", ICLR 2020.

    lambda is in units of the incoming gradient, so it depends on the scale of the loss: taking a
    mean instead of a sum, or using ``torch.amp.GradScaler``, changes the step and with it the
    gradient. ``IMLE(solver, target=AdaptiveTarget.constant(alpha), noise=None)`` is the same layer
    with a step that does not depend on that scale.
    """

    def __init__(
        self,
        solver: AnySolver,
        lambda_: float = 1.0,
        *,
        sense: Sense | None = None,
        output: Output = "mean",
        instance_dims: int | None = None,
        fractional: bool | None = None,
        repeat_arguments: bool = False,
    ) -> None:
        super().__init__(
            solver,
            difference="forward",
            target=FixedTarget(lambda_),
            noise=None,
            sense=sense,
            output=output,
            instance_dims=instance_dims,
            fractional=fractional,
            repeat_arguments=repeat_arguments,
        )


class STE(PerturbedMap):
    """Perturbed straight-through: the gradient of z is passed to theta unchanged.

    Bengio, Leonard, Courville, 2013. With sense="min" the sign is flipped. The arguments are those
    of ``AIMLE``.
    """

    def __init__(self, solver: AnySolver, **settings: Unpack[NoiseSettings]) -> None:
        target = FixedTarget(0.0)
        super().__init__(solver, difference="straight_through", target=target, **settings)


class Identity(PerturbedMap):
    """The identity as the solver's Jacobian, after a projection of theta.

    Sahoo, Paulus, Vlastelica, Musil, Kuleshov, Martius, "Backpropagation through Combinatorial
    Algorithms: Identity with Projection Works", ICLR 2023. theta is projected before the solver,
    over the unmasked entries of each instance: "mean" subtracts the mean, "norm" divides by the
    norm, "std" does both, and None does neither. A norm of zero, as that of equal scores after
    "std" subtracted their mean, does not divide.
    """

    _defaults = DEFAULTS | {"noise": None, "output": "mean"}

    def __init__(
        self,
        solver: AnySolver,
        *,
        projection: Literal["std", "mean", "norm"] | None = "std",
        **settings: Unpack[NoiseSettings],
    ) -> None:
        check_choice("Identity", "projection", projection, ("std", "mean", "norm", None))
        target = FixedTarget(0.0)
        super().__init__(solver, difference="straight_through", target=target, **settings)
        self.projection = projection

    def forward(self, theta: Tensor, *args, mask: Tensor | None = None, **kwargs) -> Tensor:
        """See ``PerturbedMap.forward``."""
        check_theta(type(self).__name__, theta)
        if mask is not None:
            check_mask(type(self).__name__, mask, theta)
        count = instance_dims_of(self.solver, theta, self.instance_dims)
        check_batch(type(self).__name__, theta, count)
        name = "none" if self.projection is None else self.projection
        projected = torch.ops.aimle.project.default(theta, name, count, mask)
        return super().forward(projected, *args, mask=mask, **kwargs)
