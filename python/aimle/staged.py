"""The layers' path for solvers that are not ours: the same stages, one by one.

Noise, steps and differences are the ops that the fused path is made of, so that a native solver
called as a plain callable gives the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from aimle.layers import PerturbedMap


def staged_map(
    layer: PerturbedMap,
    theta: Tensor,
    key: Tensor,
    mask: Tensor | None,
    settings: list,
    args: tuple,
    kwargs: dict,
) -> Tensor:
    """z for a callable solver, shaped as the layer's output says."""
    if settings[1][1] not in range(1, theta.dim() + 1):
        raise ValueError(
            f"[aimle.{type(layer).__name__}] expected theta [batch, *instance] but got shape "
            f"{tuple(theta.shape)}"
        )
    return _StagedMap.apply(theta, _Call(layer, theta, key, mask, settings, args, kwargs))


class _Call:
    """One call of a callable solver: what forward and backward share, apart from tensors."""

    def __init__(self, layer, theta, key, mask, settings, args, kwargs) -> None:
        self.layer, self.settings, self.args, self.kwargs = layer, settings, args, kwargs
        self.key, self.table = key, layer.table
        self.mask = mask
        self.minimises, dims = settings[1]
        self.samples = settings[4]
        split = theta.dim() - dims
        self.batch, self.instance = theta.shape[:split], theta.shape[split:]

    def inputs(self, theta: Tensor) -> list:
        return [theta, self.key, self.mask, None, self.table]

    def solve(self, x: Tensor) -> Tensor:
        """The callable's solution of x [B S, *instance], checked."""
        if self.mask is not None:
            rows = self.mask.expand(*self.batch, *self.instance).reshape(-1, 1, *self.instance)
            rows = rows.expand(-1, self.samples, *self.instance).reshape(x.shape)
            x = x.masked_fill(~rows, torch.inf if self.minimises else -torch.inf)
        z = self.layer.solver(x, *self.args, **self.kwargs)
        name = f"[aimle.{type(self.layer).__name__}] the solver"
        if not isinstance(z, Tensor):
            raise TypeError(f"{name} must return a tensor but returned {type(z).__name__}")
        for what in ("shape", "dtype", "device"):
            got, expected = getattr(z, what), getattr(x, what)
            if got != expected:
                error = TypeError if what == "dtype" else ValueError
                raise error(f"{name} must keep the {what} {expected} of its input but gave {got}")
        return z.detach()

    def shape_output(self, z: Tensor, dtype: torch.dtype) -> Tensor:
        """A copy of z in theta's dtype, shaped as the layer's output says."""
        output = self.layer.output
        if output == "flat":
            return z.to(dtype, copy=True)
        z = z.reshape(*self.batch, self.samples, *self.instance)
        if output == "mean":
            return z.double().mean(len(self.batch)).to(z.dtype).to(dtype)
        return z.to(dtype, copy=True)


class _StagedMap(torch.autograd.Function):
    """Saves theta, and z for the forward difference."""

    @staticmethod
    def forward(ctx, theta: Tensor, call: _Call) -> Tensor:
        layer = call.layer
        z = call.solve(torch.ops.aimle.perturb.default(*call.inputs(theta), *call.settings))
        reuse = layer.theta_noise_temperature == layer.target_noise_temperature
        ctx.call = call
        ctx.save_for_backward(theta, z if layer.difference == "forward" and reuse else None)
        return call.shape_output(z, theta.dtype)

    @staticmethod
    def backward(ctx, dy: Tensor) -> tuple[Tensor, None]:
        theta, z = ctx.saved_tensors
        with torch.no_grad():
            dtheta = _gradient(ctx.call, theta.detach(), z, dy.detach())
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            dtheta = _OnlyOnce.apply(dtheta, theta)
        return dtheta, None


def _gradient(call: _Call, theta: Tensor, z: Tensor | None, dy: Tensor) -> Tensor:
    """The gradient of theta; z is the forward pass's solution where it serves as the left one."""
    layer, ops = call.layer, torch.ops.aimle
    inputs, settings = call.inputs(theta), call.settings
    if layer.difference == "straight_through":
        return ops.straight_through.default(dy, *inputs, *settings)
    left, right, lambda_, counted = ops.step.default(dy, *inputs, layer.alpha, *settings)
    z_left = call.solve(left) if z is None else z
    z_right = call.solve(right)
    return ops.difference.default(
        z_left, z_right, lambda_, counted, *inputs, *layer._state(), *settings
    )


class _OnlyOnce(torch.autograd.Function):
    """Passes a gradient on and refuses to be differentiated."""

    @staticmethod
    def forward(ctx, dtheta: Tensor, theta: Tensor) -> Tensor:
        return dtheta.view_as(dtheta)

    @staticmethod
    def backward(ctx, *grads: Tensor):
        raise RuntimeError(
            "[aimle::perturbed_map] expected one backward pass but got a second derivative: a "
            "gradient estimate has no gradient of its own (drop create_graph=True)"
        )
