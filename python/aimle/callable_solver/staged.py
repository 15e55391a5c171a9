"""The layers' implementation for callable solvers: the same stages, one by one.

Noise, steps and differences use the same ops as the fused implementation, so a native solver
called as a plain callable gives bit-identical results.

Backward solves only the rows whose two score vectors differ: where lambda or the gradient is zero,
both solutions are the same, and a row of NaN gets a gradient of NaN whatever its solution. If no
row is left, the solver is not called. All rows are solved

    if the call has extra arguments, which may have an entry per row that the layer cannot identify
    (unless no row differs, or the layer repeats the arguments itself: ``repeat_arguments``), or if
    the solver has an attribute ``rowwise = False``;
    on a GPU, where counting the rows would wait for the device;
    in compiled code, whose shapes cannot depend on values;
    by the functions of ``aimle.compat``, as in the authors' code.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from aimle.callable_solver.answers import as_answer, may_be_fractional
from aimle.callable_solver.extra_arguments import ExtraArguments
from aimle.settings.checks import check_batch

if TYPE_CHECKING:
    from aimle.perturbed_map import PerturbedMap

_ops = torch.ops.aimle


class CallableSolver(NamedTuple):
    """Properties of a callable solver."""

    minimises: bool
    instance_dims: int
    fixed_size: bool  # False also if it is unknown

    @property
    def text(self) -> str:
        """The text form that the layer ops take (aimle/torch/layer/layer_settings.h)."""
        sense = "min" if self.minimises else "max"
        return f"callable:sense={sense},dims={self.instance_dims},fixed_size={int(self.fixed_size)}"


def setting_of(settings: str, name: str) -> str:
    """The value of one setting in the settings text of the layer ops."""
    return next(f.partition("=")[2] for f in settings.split(" ") if f.startswith(f"{name}="))


def with_setting(settings: str, name: str, value: object) -> str:
    """The settings text of the layer ops with one value replaced."""
    fields = settings.split(" ")
    return " ".join(f"{name}={value}" if f.startswith(f"{name}=") else f for f in fields)


def staged_map(
    layer: PerturbedMap,
    theta: Tensor,
    key: Tensor,
    mask: Tensor | None,
    solver: CallableSolver,
    settings: str,
    deferred: bool,
    args: tuple,
    kwargs: dict,
) -> Tensor:
    """z for a callable solver, in the layer's output shape."""
    check_batch(layer._owner, theta, solver.instance_dims)
    call = StagedCall(layer, theta, key, mask, solver, settings, args, kwargs)
    call.state = layer._state(deferred)
    if getattr(layer.solver, "fixed_size", None) is None:
        call.sizes = layer._buffers["sizes"]
    return StagedMap.apply(theta, call)


def _without_autocast(device: str) -> AbstractContextManager:
    """Disables autocast in backward, which runs outside the user's autocast: the same scores solved
    in a different precision than in forward could give a different solution."""
    if device in ("cpu", "cuda") and torch.is_autocast_enabled(device):
        return torch.autocast(device, enabled=False)
    return nullcontext()


#: lambda and counted, the inputs of `StagedCall.difference`; none for a user-defined target.
Weights = tuple[Tensor, ...]


class StagedCall:
    """One call of a callable solver: its stages, and the data shared by forward and backward that
    is not a tensor of the graph."""

    #: Whether backward may leave out rows.
    solves_some_rows = True
    #: The state at the time of the call; torch.func.functional_call restores the old one
    #: afterwards.
    state: list[Tensor | None]
    #: The layer's record of the sizes of solutions (aimle/torch/layer/solution_sizes.h); None if
    #: no step depends on it.
    sizes: Tensor | None = None

    def __init__(self, layer, theta, key, mask, solver, settings, args, kwargs) -> None:
        self.layer = layer
        self.settings = f"solver={solver.text} {settings}"
        self.temperatures = layer._temperatures()
        self.key, self.table = key, layer.table
        self.mask = mask
        self.minimises = solver.minimises
        self.samples = int(setting_of(settings, "samples"))
        self.adapts = setting_of(settings, "adapt") == "1"
        split = theta.dim() - solver.instance_dims
        self.batch, self.instance = theta.shape[:split], theta.shape[split:]
        self.arguments = ExtraArguments(args, kwargs)
        if layer.repeat_arguments:
            owner = layer._owner
            self.arguments = self.arguments.repeated(owner, self.batch, self.samples)
        # If only the step makes a difference, the forward difference reuses z.
        equal = layer.theta_noise_temperature == layer.target_noise_temperature
        self.keeps_solution = layer.difference == "forward" and equal

    def inputs(self, theta: Tensor) -> list:
        return [theta, self.key, self.mask, None, self.table]

    def perturb(self, theta: Tensor) -> Tensor:
        """x [B S, *instance]."""
        return _ops.perturb.default(*self.inputs(theta), self.settings, *self.temperatures)

    def sizes_of(self, z: Tensor) -> Tensor | None:
        """The sizes of the forward solution z, for backward."""
        return None if self.sizes is None else _ops.solution_sizes.default(z, z[:1])

    def sizes_with(self, seen: Tensor | None) -> Tensor | None:
        """The sizes of all solutions before this backward pass, with those of its forward pass."""
        return None if self.sizes is None or seen is None else torch.minimum(self.sizes, seen)

    def record_sizes(
        self, sizes: Tensor | None, z_left: Tensor, z_right: Tensor, weights: Weights
    ) -> None:
        """Updates the layer's record from the solutions of backward, if any sample had a finite,
        non-zero gradient."""
        if self.sizes is None or sizes is None or not self.adapts:
            return
        sizes = torch.minimum(sizes, _ops.solution_sizes.default(z_left, z_right))
        _, counted = weights
        self.sizes.copy_(torch.where(counted.bool().any(), sizes, self.sizes))

    def step(
        self, theta: Tensor, dy: Tensor, sizes: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Weights]:
        """x_left, x_right [B S, *instance], and the weights of the difference."""
        alpha, _, updates = self.state[:3]
        state = (alpha, updates, sizes)
        left, right, *weights = _ops.step.default(
            dy, *self.inputs(theta), *state, self.settings, *self.temperatures
        )
        return left, right, tuple(weights)

    def difference(
        self, theta: Tensor, dy: Tensor, z_left: Tensor, z_right: Tensor, weights: Weights
    ) -> Tensor:
        """The gradient of theta; updates the state."""
        return self.difference_with(self.settings, theta, z_left, z_right, *weights)

    def difference_with(self, settings: str, theta: Tensor, *parts: Tensor) -> Tensor:
        """The op for these settings; parts: z_left, z_right and the weights."""
        return _ops.difference.default(
            *parts, *self.inputs(theta), *self.state, settings, *self.temperatures
        )

    def straight_through(self, theta: Tensor, dy: Tensor) -> Tensor:
        """The gradient of theta."""
        return _ops.straight_through.default(
            dy, *self.inputs(theta), self.settings, *self.temperatures
        )

    def solve(self, x: Tensor) -> Tensor:
        """The callable's solution of x [B S, *instance], checked."""
        return self.call_solver(self.hide_masked(x))

    def solve_both(self, left: Tensor, right: Tensor, z: Tensor | None) -> tuple[Tensor, Tensor]:
        """z_left and z_right; z is used as the left one where it is already known."""
        left, right = self.hide_masked(left), self.hide_masked(right)
        rows = self.rows_to_solve(left, right)
        if rows is None:
            return self.call_solver(left) if z is None else z, self.call_solver(right)
        z_left = torch.zeros_like(left) if z is None else z
        z_right = z_left.clone()
        if rows.numel() > 0:
            if z is None:
                z_left[rows] = self.call_solver(left[rows], rows)
            z_right[rows] = self.call_solver(right[rows], rows)
        return z_left, z_right

    def rows_to_solve(self, left: Tensor, right: Tensor) -> Tensor | None:
        """The rows whose solutions can differ, or None for all of them; see the module."""
        if not self.solves_some_rows or torch.compiler.is_compiling():
            return None
        if not left.is_cpu or type(left) is not Tensor:  # a fake tensor has no values
            return None
        differ = (left != right).flatten(1).any(1) & ~right.isnan().flatten(1).any(1)
        rows = differ.nonzero().squeeze(1)
        if rows.numel() == left.shape[0]:
            return None
        by_row = getattr(self.layer.solver, "rowwise", True) and self.arguments.can_be_split
        return rows if rows.numel() == 0 or by_row else None

    def hide_masked(self, x: Tensor) -> Tensor:
        """x [B S, *instance] with the scores of masked entries set to the worst infinity."""
        if self.mask is None:
            return x
        rows = self.mask.expand(*self.batch, *self.instance).reshape(-1, 1, *self.instance)
        rows = rows.expand(-1, self.samples, *self.instance).reshape(x.shape)
        return x.masked_fill(~rows, torch.inf if self.minimises else -torch.inf)

    def call_solver(self, x: Tensor, rows: Tensor | None = None) -> Tensor:
        """The callable's checked solution of x [N, *instance]: all rows, or the given ones."""
        given = self.arguments if rows is None else self.arguments.of_rows(rows)
        with _without_autocast(x.device.type):
            if torch.compiler.is_compiling():
                z = self.layer.solver(x, *given.args, **given.kwargs)
            else:
                z = self.call_with_note(x, given)
        return self.checked(z, x)

    def call_with_note(self, x: Tensor, given: ExtraArguments) -> object:
        """The callable's return value; its errors get a note about what it was called with."""
        try:
            return self.layer.solver(x, *given.args, **given.kwargs)
        except Exception as error:
            if hasattr(error, "add_note") and not str(error).startswith("[aimle"):
                error.add_note(self.note(x, given))
            raise

    def note(self, x: Tensor, given: ExtraArguments) -> str:
        """What the callable was called with, and how to call it otherwise."""
        note = (
            f"[aimle.{self.layer._owner}] called the solver with scores of shape "
            f"{list(x.shape)}, {x.shape[0]} instances: wrap a function of one instance in "
            "aimle.per_instance"
        )
        if self.samples > 1 and (given.args or given.kwargs) and not self.layer.repeat_arguments:
            note += (
                f"; extra arguments were not repeated for the {self.samples} samples: for one "
                "entry per example, make the layer with repeat_arguments=True"
            )
        return note

    def checked(self, z: object, x: Tensor) -> Tensor:
        """The callable's return value z as a tensor like x."""
        fractional = may_be_fractional(self.layer.solver, self.layer.fractional)
        return as_answer(self.layer._owner, z, x, fractional=fractional)

    def shape_output(self, z: Tensor, dtype: torch.dtype) -> Tensor:
        """A copy of z in theta's dtype, in the layer's output shape."""
        output = self.layer.output
        if output == "flat":
            return z.to(dtype, copy=True)
        z = z.reshape(*self.batch, self.samples, *self.instance)
        if output == "mean":
            # Divide by a tensor: on a GPU, PyTorch turns division by a number into multiplication
            # by its reciprocal.
            count = torch.full((), self.samples, dtype=torch.float64, device=z.device)
            return (z.double().sum(len(self.batch)) / count).to(z.dtype).to(dtype)
        return z.to(dtype, copy=True)


class StagedMap(torch.autograd.Function):
    """Saves theta, and z for the forward difference. Key and mask, which the call holds, are saved
    so that autograd raises its error if they change in place before backward."""

    @staticmethod
    def forward(ctx, theta: Tensor, call: StagedCall) -> Tensor:
        z = call.solve(call.perturb(theta))
        ctx.call = call
        kept = z if call.keeps_solution else None
        ctx.save_for_backward(theta, kept, call.sizes_of(z), call.key, call.mask)
        return call.shape_output(z, theta.dtype)

    @staticmethod
    def backward(ctx, dy: Tensor) -> tuple[Tensor, None]:
        theta, z, seen, *_ = ctx.saved_tensors
        with torch.no_grad():
            dtheta = _gradient(ctx.call, theta.detach(), z, seen, dy.detach())
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            dtheta = _OnlyOnce.apply(dtheta, theta)
        return dtheta, None


def _gradient(
    call: StagedCall, theta: Tensor, z: Tensor | None, seen: Tensor | None, dy: Tensor
) -> Tensor:
    """The gradient of theta; z is the forward solution if it can serve as the left one, seen its
    sizes."""
    if call.layer.difference == "straight_through":
        return call.straight_through(theta, dy)
    sizes = call.sizes_with(seen)
    left, right, weights = call.step(theta, dy, sizes)
    z_left, z_right = call.solve_both(left, right, z)
    call.record_sizes(sizes, z_left, z_right, weights)
    return call.difference(theta, dy, z_left, z_right, weights)


class _OnlyOnce(torch.autograd.Function):
    """Passes a gradient through and refuses double backward."""

    @staticmethod
    def forward(ctx, dtheta: Tensor, theta: Tensor) -> Tensor:
        return dtheta.view_as(dtheta)

    @staticmethod
    def backward(ctx, *grads: Tensor):
        raise RuntimeError(
            "[aimle::perturbed_map] expected one backward pass but got a second derivative: a "
            "gradient estimate cannot be differentiated (drop create_graph=True)"
        )
