"""Base of ``aimle``, ``imle`` and ``ste``: the staged layer with the authors' conventions.

The stages are those of every layer (aimle/callable_solver/staged.py, over ``torch.ops.aimle``),
extended as the authors' interface requires: noise from a user's ``sample``, a factor on theta, an
optional division by lambda, means of solutions over M marginal samples, means over S instead of
sums, and user-defined targets.
"""

from __future__ import annotations

import functools
import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, cast, overload

import numpy as np
import torch
from torch import Size, Tensor

from aimle._files import write_atomically
from aimle.callable_solver.answers import as_answer
from aimle.callable_solver.staged import (
    CallableSolver,
    StagedCall,
    StagedMap,
    Weights,
    with_setting,
)
from aimle.compat.noise import BaseNoiseDistribution, as_native, is_ours
from aimle.compat.target import (
    AdaptiveTargetDistribution,
    BaseTargetDistribution,
    OurTarget,
    TargetDistribution,
    has_our_rule,
)
from aimle.functional import blank_key, draw_key, sample_noise
from aimle.perturbed_map import PerturbedMap
from aimle.settings.checks import (
    check_batch,
    check_bool,
    check_int,
    check_theta,
    check_type,
    refuse_type,
)
from aimle.solvers import refuse_class_or_layer
from aimle.targets import FixedTarget, target_text

P = ParamSpec("P")  # the extra arguments of a function
S = ParamSpec("S")  # the settings of an estimator


class Differentiable(Protocol[P]):
    """A function with a gradient. The layer behind it is its attribute ``layer``."""

    layer: AuthorsMap

    def __call__(self, theta: Tensor, *args: P.args, **kwargs: P.kwargs) -> Tensor: ...


class Decorator(Protocol[S]):
    """``estimator(function, ...)``, ``@estimator`` and ``@estimator(...)``."""

    @overload
    def __call__(
        self,
        function: Callable[Concatenate[Tensor, P], Tensor],
        *args: S.args,
        **settings: S.kwargs,
    ) -> Differentiable[P]: ...

    @overload
    def __call__(
        self, function: None = None, *args: S.args, **settings: S.kwargs
    ) -> Callable[[Callable[Concatenate[Tensor, P], Tensor]], Differentiable[P]]: ...


def usable_as_decorator(
    estimator: Callable[Concatenate[Callable[..., Tensor] | None, S], Differentiable[...]],
) -> Decorator[S]:
    """Makes ``estimator(function, ...)`` usable as ``@estimator`` and ``@estimator(...)``."""

    @functools.wraps(estimator)
    def call(
        function: Callable[..., Tensor] | None = None, *args: S.args, **settings: S.kwargs
    ) -> Any:
        if function is None:
            return lambda function: estimator(function, *args, **settings)
        return estimator(function, *args, **settings)

    return call


def wrap(function: Callable[..., Tensor] | None, **settings) -> Differentiable[...]:
    """``function`` with a gradient. The layer behind it is its attribute ``layer``."""
    assert function is not None  # guaranteed by usable_as_decorator
    layer = AuthorsMap(function, **settings)

    @functools.wraps(function)
    def wrapper(theta: Tensor, *args, **kwargs) -> Tensor:
        return layer(theta, *args, **kwargs)

    result = cast("Differentiable[...]", wrapper)
    result.layer = layer
    return result


class AuthorsMap(PerturbedMap):
    """theta [B, *instance] -> z [B S M, *instance]; the gradient is the mean over samples."""

    _owner = "compat"

    def __init__(
        self,
        function: Callable[..., Tensor],
        *,
        difference: Literal["central", "forward", "straight_through"],
        target: BaseTargetDistribution,
        noise: BaseNoiseDistribution | None,
        nb_samples: int,
        nb_marginal_samples: int = 1,
        theta_noise_temperature: float,
        target_noise_temperature: float,
        minimises: bool = False,
        reuses_solution: bool = False,
        reference: bool = False,
        gradient_save_path: str | None = None,
    ) -> None:
        owner = self._owner
        check_type(owner, function, Callable, "function to be callable")
        refuse_class_or_layer(owner, "function", function)
        expected = (
            "target_distribution to be a TargetDistribution, an AdaptiveTargetDistribution or "
            "derived from BaseTargetDistribution"
        )
        check_type(owner, target, BaseTargetDistribution, expected)
        if noise is not None and not callable(getattr(noise, "sample", None)):
            expected = "noise_distribution to be None or derived from BaseNoiseDistribution"
            refuse_type(owner, expected, noise)
        minimises = check_bool(owner, "_is_minimization", minimises)
        reference = check_bool(owner, "reference", reference)
        nb_samples = check_int(owner, "nb_samples", nb_samples, 1)
        nb_marginal_samples = check_int(owner, "nb_marginal_samples", nb_marginal_samples, 1)
        native = None if reference and is_ours(noise) else as_native(noise)
        factor = 1.0 if native is None else native[1]
        super().__init__(
            functools.partial(function),  # so that it is not registered as a submodule
            difference=difference,
            target=FixedTarget(),
            noise=None if native is None else native[0],
            nb_samples=nb_samples * nb_marginal_samples,
            theta_noise_temperature=theta_noise_temperature,
            target_noise_temperature=target_noise_temperature,
            sense="min" if minimises else "max",
            output="flat",
            noise_in_eval=True,
            generator=None,
        )
        self.theta_noise_temperature *= factor
        self.target_noise_temperature *= factor
        self.target_distribution = target
        self.noise_distribution = noise if native is None else None
        self.nb_marginal_samples = nb_marginal_samples
        self.reuses_solution = reuses_solution
        self.reference = reference
        self.gradient_save_path = gradient_save_path

    @property
    def our_target(self) -> OurTarget | None:
        """The target, unless it is user-defined."""
        target = self.target_distribution
        return target if has_our_rule(target) else None

    def forward(self, theta: Tensor, *args, **kwargs) -> Tensor:
        """z [B S M, *instance]. Extra arguments are passed to the function in every call."""
        check_theta(self._owner, theta)
        check_batch(self._owner, theta, theta.dim() - 1)
        if self.layer_stats.device != theta.device:
            self.to(theta.device)
        target = self.our_target
        if target is not None:
            self._target_text = target_text(target.settings(self.reference))
        about = CallableSolver(self.sense == "min", theta.dim() - 1, fixed_size=False)
        noiseless = self.noise is None
        key = blank_key(theta) if noiseless else draw_key(theta)
        make = OwnRuleCall if target is None else AuthorsCall
        call = make(self, theta, key, None, about, self._settings(True), args, kwargs)
        return StagedMap.apply(theta, call)

    def sample(self, theta: Tensor, key: Tensor) -> Tensor:
        """The noise [B S M, *instance] as it is added to theta."""
        rows, instance = theta.shape[0] * self.nb_samples, theta.shape[1:]
        distribution = self.noise_distribution
        if distribution is None:
            counts = {"nb_samples": self.nb_samples, "instance_dims": len(instance)}
            noise = sample_noise(self.noise, theta.shape, key, **counts)
        else:
            shape = Size([theta.shape[0], self.nb_samples, *instance])
            noise = distribution.sample(shape)
            if not isinstance(noise, Tensor) or noise.shape != shape:
                got = tuple(noise.shape) if isinstance(noise, Tensor) else type(noise).__name__
                raise ValueError(
                    f"[aimle.{self._owner}] expected noise of shape {tuple(shape)} from "
                    f"{type(distribution).__name__}.sample but got {got}"
                )
        flips = self.sense == "min" and not self.reference
        ours = distribution is None or is_ours(distribution)
        noise = noise.detach().to(theta.device).reshape(rows, *instance)
        return -noise if flips and ours else noise

    def _state(self, deferred: bool = False) -> list[Tensor | None]:
        stats = self.layer_stats
        target = self.our_target
        return [*([None] * 4 if target is None else target.state(stats.device)), stats]


class AuthorsCall(StagedCall):
    """One call: the stages with a factor on theta, given noise and marginal samples."""

    solves_some_rows = False  # the authors' functions always get all rows

    @property
    def state(self) -> list[Tensor | None]:  # type: ignore[override]
        """The target's current state: the authors read it in backward."""
        return self.layer._state()

    def __init__(self, layer, theta, key, mask, solver, settings, args, kwargs) -> None:
        super().__init__(layer, theta, key, mask, solver, settings, args, kwargs)
        target = layer.target_distribution
        self.target = target
        own_rule = layer.our_target is None
        self.factor = 1.0 if own_rule else target.alpha
        self.noise = None
        self.output_dtype: torch.dtype | None = None
        outside = own_rule or self.factor != 1.0
        if layer.noise_distribution is not None or (layer.noise is not None and outside):
            self.noise = layer.sample(theta, key)
            self.settings = with_setting(self.settings, "noise", "none")
        self.keeps_solution = layer.difference == "forward" and (
            layer.reuses_solution or (self.keeps_solution and not outside)
        )

    def checked(self, z: object, x: Tensor) -> Tensor:
        """The function's result; a floating-point dtype of its own becomes the output's."""
        if isinstance(z, Tensor) and z.is_floating_point() and z.dtype != x.dtype:
            self.output_dtype = z.dtype
        return as_answer("compat", z, x, fractional=True)

    def shape_output(self, z: Tensor, dtype: torch.dtype) -> Tensor:
        return super().shape_output(z, self.output_dtype or dtype)

    def add_noise(self, x: Tensor, temperature: float) -> Tensor:
        return x if self.noise is None else (x + self.noise * temperature).to(x.dtype)

    def perturb(self, theta: Tensor) -> Tensor:
        return self.add_noise(super().perturb(theta), self.layer.theta_noise_temperature)

    def step(
        self, theta: Tensor, dy: Tensor, sizes: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Weights]:
        left, right, (lambda_, counted) = super().step(theta, dy.to(theta.dtype))
        if self.factor != 1.0:
            left, right = self.step_from_scaled(theta, dy, lambda_[:, :-2])
        if isinstance(self.target, TargetDistribution):
            lambda_[:, -2] = self.target.divisor
        elif self.layer.reference:  # division by one if lambda is zero
            lambda_[:, -2].masked_fill_(lambda_[:, -2] == 0, math.sqrt(self.samples))
        temperature = self.layer.target_noise_temperature
        left, right = self.add_noise(left, temperature), self.add_noise(right, temperature)
        return left, right, (lambda_, counted)

    def step_from_scaled(self, theta: Tensor, dy: Tensor, lambda_: Tensor) -> tuple[Tensor, Tensor]:
        """factor * theta +- lambda dy, with the lambda [B, S M] of theta itself."""
        rows = self.factor * self.repeat(theta)
        step = (lambda_.reshape(-1, *(1,) * len(self.instance)) * dy.double()).to(rows.dtype)
        step = -step if self.minimises else step
        return (rows + step if self.layer.difference == "central" else rows), rows - step

    def repeat(self, theta: Tensor) -> Tensor:
        """[B, *instance] -> [B S M, *instance], in the dtype that solvers get."""
        dtype = torch.promote_types(theta.dtype, torch.float32)
        return theta.to(dtype).repeat_interleave(self.samples, 0)

    def mean_over_marginals(self, z: Tensor) -> Tensor:
        """[B S M, *instance] -> [B S, *instance]."""
        marginal = self.layer.nb_marginal_samples
        return z if marginal == 1 else z.reshape(-1, marginal, *self.instance).mean(1)

    def difference(
        self, theta: Tensor, dy: Tensor, z_left: Tensor, z_right: Tensor, weights: Weights
    ) -> Tensor:
        layer = self.layer
        lambda_, counted = weights
        marginal = layer.nb_marginal_samples
        samples = self.samples // marginal
        z_left, z_right = self.mean_over_marginals(z_left), self.mean_over_marginals(z_right)
        if marginal > 1:
            # A group counts if any of its gradients does, and is NaN if any is (amax propagates
            # NaN).
            counted = counted.reshape(-1, samples, marginal).amax(2)
            groups = lambda_[:, :-2].reshape(-1, samples, marginal).amax(2)
            lambda_ = torch.cat([groups, lambda_[:, -2:]], 1)
        settings = with_setting(self.settings, "samples", samples)
        total = self.difference_with(settings, theta, z_left, z_right, lambda_, counted)
        repeats = layer.reference and isinstance(self.target, AdaptiveTargetDistribution)
        if layer.gradient_save_path is not None:
            scale = math.sqrt(self.samples) if repeats else 1.0
            divisor = lambda_[:, -2].to(z_left.dtype).reshape(-1, 1, *(1,) * len(self.instance))
            divisor = torch.where(divisor > 0, divisor / scale, 1.0)
            self.save(self.sample_differences(z_left, z_right) / divisor)
        return total / (samples / math.sqrt(marginal) if repeats else samples)

    def sample_differences(self, z_left: Tensor, z_right: Tensor) -> Tensor:
        """[B, S, *instance], halved if central."""
        difference = (z_left - z_right).reshape(*self.batch, -1, *self.instance)
        return difference / 2.0 if self.layer.difference == "central" else difference

    def save(self, gradient_3d: Tensor) -> None:
        file = io.BytesIO()
        np.save(file, gradient_3d.cpu().numpy())
        write_atomically(Path(self.layer.gradient_save_path), file.getvalue())

    def straight_through(self, theta: Tensor, dy: Tensor) -> Tensor:
        return super().straight_through(theta, dy.to(theta.dtype)) / self.samples


class OwnRuleCall(AuthorsCall):
    """One call with a user-defined target: ``params`` steps, ``process`` divides."""

    def step(
        self, theta: Tensor, dy: Tensor, sizes: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Weights]:
        temperature = self.layer.target_noise_temperature
        rows = self.repeat(theta)
        minimises = {"_is_minimization": True} if self.minimises else {}
        central = self.layer.difference == "central"
        right = self.target.params(rows, dy, **minimises)
        left = self.target.params(rows, -dy if central else None, **minimises)
        return self.add_noise(left, temperature), self.add_noise(right, temperature), ()

    def difference(
        self, theta: Tensor, dy: Tensor, z_left: Tensor, z_right: Tensor, weights: Weights
    ) -> Tensor:
        z_left, z_right = self.mean_over_marginals(z_left), self.mean_over_marginals(z_right)
        gradient_3d = self.sample_differences(z_left, z_right)
        gradient_3d = self.target.process(theta, dy, gradient_3d)
        if self.layer.gradient_save_path is not None:
            self.save(gradient_3d)
        gradient = gradient_3d.mean(1).to(theta.dtype)
        return -gradient if self.minimises else gradient
