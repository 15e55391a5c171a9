"""Estimators that use the losses of the samples, not only their gradients.

A module's backward pass only receives gradients, so the losses are passed back by ``surrogate``,
whose result has the values of the losses and, in addition to their own gradients, that of theta.
"""

from __future__ import annotations

import warnings
from typing import Literal

import torch
from torch import Tensor
from torch.compiler import is_compiling
from typing_extensions import Unpack

from aimle.estimate.perturbed import signed
from aimle.estimate.sampled import SampledEstimator
from aimle.layers import split_target
from aimle.perturbed_map import PerturbedMap
from aimle.settings.checks import (
    check_batch,
    check_choice,
    check_share,
    check_tensor,
    check_theta,
    instance_dims_of,
)
from aimle.settings.defaults import difference_for
from aimle.settings.shared import DEFAULTS, AdaptiveSettings, AnySolver, Output, SampleSettings
from aimle.solvers import Data, K, Mask, Solver

_ops = torch.ops.aimle

# Training calls of an SFE that was never given a loss, after which it warns. Programs may draw
# several times before their first loss.
_CALLS_WITHOUT_LOSSES = 100


class SFE(SampledEstimator):
    """The score function estimator: mean_s (f_s - b_s) (z_s - mu), for losses f of any kind.

    Williams, "Simple statistical gradient-following algorithms", 1992. z_s are exact samples of
    p(z) = exp(<theta, z> - A(theta)), and mu its exact marginals. Unbiased for any f, discontinuous
    ones too. The losses are passed back by ``surrogate``:

        z = layer(theta)  # [*batch, S, n]
        losses = loss(z)  # [*batch, S], one for every sample
        layer.surrogate(theta, z, losses).mean().backward()

    Args:
        baseline: b_s: "none", or "leave_one_out", the mean of the other samples' losses (Kool, van
            Hoof, Welling, 2019), which needs nb_samples >= 2.
    The other arguments are those of ``SampledEstimator``. z itself carries no gradient: theta only
    gets one through ``surrogate``. A layer that is trained without it warns once.
    """

    _op = _ops.sfe.default
    _calls: int | None = 0  # in training; None after `surrogate` was called

    def __init__(
        self,
        solver: Solver,
        *,
        baseline: Literal["none", "leave_one_out"] = "none",
        **settings: Unpack[SampleSettings],
    ) -> None:
        super().__init__(solver, **settings)
        check_choice("SFE", "baseline", baseline, ("none", "leave_one_out"))
        _refuse_mean("SFE", self.output)
        if baseline == "leave_one_out" and self.nb_samples < 2:
            raise ValueError(
                f"[aimle.SFE] expected nb_samples >= 2 for baseline='leave_one_out' but got "
                f"{self.nb_samples}"
            )
        self.baseline = baseline

    def _called(self, theta: Tensor) -> None:
        """Warns once if theta is trained, but no losses were passed back."""
        trains = self.training and torch.is_grad_enabled() and theta.requires_grad
        if is_compiling() or not trains or self._calls is None:
            return
        self._calls += 1
        if self._calls == _CALLS_WITHOUT_LOSSES:
            warnings.warn(
                f"[aimle.SFE] theta got no gradient in {_CALLS_WITHOUT_LOSSES} training calls, "
                "because the samples carry none: pass the losses back with "
                "layer.surrogate(theta, z, losses).mean().backward()",
                stacklevel=5,
            )

    def surrogate(
        self,
        theta: Tensor,
        z: Tensor,
        losses: Tensor,
        *,
        mask: Mask = None,
        k: K = None,
        data: Data = None,
    ) -> Tensor:
        """losses, one per sample, with the gradient of theta; mask, k and data as for z."""
        _check_losses("SFE", theta, z, losses, self.solver.instance_dims)
        self._calls = None
        solver, row_data = self.solver.row_arguments(type(self).__name__, theta, k, data)
        return _ops.sfe_surrogate.default(
            theta, z, losses, mask, row_data, solver, self.baseline == "leave_one_out"
        )


class CovarianceAIMLE(PerturbedMap):
    """A weighted sum of AIMLE and the covariance of losses and solutions.

    (1 - share) times AIMLE plus share times Cov(f, z) / tau over the S >= 2 perturbed samples.
    Under Gumbel noise the covariance is unbiased for argmax, and close to it for others. The losses
    are passed back by ``surrogate``, as for ``SFE``.

    Args:
        share: weight of the covariance; 1 leaves AIMLE out.
    The other arguments are those of ``AIMLE``; nb_samples >= 2. Without ``surrogate`` the gradient
    is (1 - share) times AIMLE's.
    """

    _defaults = DEFAULTS | {"nb_samples": 2}

    def __init__(
        self,
        solver: AnySolver,
        *,
        share: float = 0.5,
        symmetric_perturbation: bool | None = None,
        **settings: Unpack[AdaptiveSettings],
    ) -> None:
        target, others = split_target(type(self).__name__, settings)
        owner = type(self).__name__
        difference = difference_for(owner, solver, settings["sense"], symmetric_perturbation)
        super().__init__(solver, difference=difference, target=target, **others)
        _refuse_mean("CovarianceAIMLE", self.output)
        check_share("CovarianceAIMLE", "share", share)
        self.share = float(share)
        self._check_samples()

    def _check_samples(self) -> None:
        """Raises ValueError unless samples differ; both settings can be assigned."""
        if self.nb_samples < 2:
            raise ValueError(
                f"[aimle.CovarianceAIMLE] expected nb_samples >= 2 but got {self.nb_samples}"
            )
        if self.noise is None or self.theta_noise_temperature == 0:
            raise ValueError("[aimle.CovarianceAIMLE] needs noise: all samples would be the same")

    def forward(self, theta: Tensor, *args, **kwargs) -> Tensor:
        """See ``AIMLE``."""
        check_theta(type(self).__name__, theta)
        self._check_samples()
        return super().forward(_ops.scale_gradient.default(theta, 1 - self.share), *args, **kwargs)

    def surrogate(self, theta: Tensor, z: Tensor, losses: Tensor) -> Tensor:
        """losses, one per sample, with the covariance's part of the gradient of theta."""
        check_theta("CovarianceAIMLE", theta)
        dims = instance_dims_of(self.solver, theta, self.instance_dims)
        _check_losses("CovarianceAIMLE", theta, z, losses, dims)
        tau = signed(self.theta_noise_temperature, self.sense)
        return _ops.covariance_surrogate.default(theta, z, losses, self.share, tau, dims)


def _check_losses(owner: str, theta: Tensor, z: Tensor, losses: Tensor, dims: int) -> None:
    """Raises TypeError or ValueError unless z has the shape of samples for theta."""
    check_theta(owner, theta)
    check_batch(owner, theta, dims)
    check_tensor(owner, "z", z)
    check_tensor(owner, "losses", losses)
    split = theta.dim() - dims
    batch, instance = theta.shape[:split], theta.shape[split:]
    by_example = z.dim() == theta.dim() + 1 and z.shape[:split] == batch
    flat = z.dim() == dims + 1 and z.shape[0] % max(1, batch.numel()) == 0
    swapped = z.requires_grad and not theta.requires_grad
    if swapped or not (by_example or flat) or z.shape[z.dim() - dims :] != instance:
        raise ValueError(
            f"[aimle.{owner}] expected surrogate(theta, z, losses) with z [*batch, S, *instance] "
            f"or [batch * S, *instance] for theta of shape {list(theta.shape)} but got z of shape "
            f"{list(z.shape)}" + (", which may be theta" if swapped else "")
        )


def _refuse_mean(owner: str, output: Output) -> None:
    if output == "mean":
        raise ValueError(
            f"[aimle.{owner}] expected output to be 'samples' or 'flat' but got 'mean': it needs "
            "the loss of every sample"
        )
