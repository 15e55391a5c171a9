"""What all layers share: a solver inside a network, with a gradient.

    theta -> noise -> perturb -> solver -> z -> [your loss] -> theta +- lambda d -> solver again
                                                                    -> difference -> gradient

``layer(theta)`` takes theta [*batch, *instance], every instance being one example, and returns z:

    output="samples"   [*batch, S, *instance]   the gradient is the sum over samples, so that
                                                ``loss.mean()`` gives the paper's mean
    output="flat"      [B S, *instance]         the same, example-major
    output="mean"      [*batch, *instance]      the mean of the samples

In training mode z is sampled with noise. In eval mode it is the noise-free solution (S = 1), unless
``noise_in_eval``, and the adaptive state rests.
"""

from __future__ import annotations

import math
from typing import Any, Literal, cast

import torch
from torch import Tensor
from torch.compiler import is_compiling
from typing_extensions import Unpack

from aimle._defaults import noise_for, subtracted_mean, temperature_for
from aimle._onnx import in_onnx_export, onnx_solution
from aimle._sampling import AnySolver, NoiseSettings, SamplingModule, StepSettings
from aimle._saved_state import usable_state
from aimle._settings import check_positive, check_tensor, check_theta, instance_dims_of, is_number
from aimle._sharing import SharedState, Sharing, check_group
from aimle.functional import blank_key, draw_layer_key
from aimle.noise import Noise, SumOfGamma
from aimle.solvers import CHECK_DEFAULT, Solver, checked_dims, resolve_sense
from aimle.staged import CallableSolver, staged_map
from aimle.targets import AdaptiveTarget, Target, ThresholdTarget, target_text

_perturbed_map = torch.ops.aimle.perturbed_map.default
_apply_counts = torch.ops.aimle.apply_counts.default

_STATS = ("lambda_mean", "lambda_min", "lambda_max", "count", "zero_share", "changed_share")
_THRESHOLD_STATS = ("capped_share", "capped_mass")
_WATCH = ("idle_updates", "updates_at_bound")
# As they lie in memory (stats.h).
_ALL_STATS = (*_STATS, *_THRESHOLD_STATS, "clipped_share", *_WATCH, "warned")
_STATE = ("alpha", "gbar", "updates", "reach", "velocity", "layer_stats")


def _check_temperature(owner: str, name: str, value: object) -> None:
    if not (is_number(value) and value >= 0):
        raise ValueError(f"[aimle.{owner}] expected {name} finite and >= 0 but got {value!r}")


def one_temperature(owner: str, settings: NoiseSettings, *, positive: bool = False) -> float | None:
    """The scale of the noise, given by either of its two names; None if by none."""
    name, value = "temperature", settings["temperature"]
    other = settings["theta_noise_temperature"]
    if value is not None and other is not None:
        raise TypeError(
            f"[aimle.{owner}] expected temperature or theta_noise_temperature, two names of one "
            "setting, but got both"
        )
    if value is None:
        name, value = "theta_noise_temperature", other
    if value is None:
        return None
    (check_positive if positive else _check_temperature)(owner, name, value)
    return float(value)


def _listed(args: tuple, kwargs: dict) -> str:
    return ", ".join([*(type(each).__name__ for each in args), *(f"{name}=" for name in kwargs)])


def _refuse_transforms(owner: str, solver: object) -> None:
    """RuntimeError inside torch.func's grad, vjp, jacrev and jvp; native solvers let vmap pass."""
    transform = torch._C._functorch
    if transform.peek_interpreter_stack().key() != transform.TransformType.Vmap:
        raise RuntimeError(
            f"[aimle.{owner}] torch.func cannot differentiate it: expected backward() or "
            "torch.autograd.grad instead of torch.func's grad, vjp, jacrev or jvp"
        )
    if not isinstance(solver, Solver):
        raise RuntimeError(
            f"[aimle.{owner}] torch.func.vmap cannot map a callable solver: give all rows as one "
            "batch instead"
        )


class PerturbedMap(SamplingModule, SharedState):
    """Perturb-and-MAP with an estimated gradient: the part that all layers share.

    Args:
        solver: a native solver, or any callable from scores [B S, *instance] (example-major) to
            solutions of the same shape and device; float32 where theta is bfloat16 or
            float16. NumPy's arrays, bools and other precisions are converted. Solutions must be
            whole numbers unless an attribute ``fractional``, or the layer's argument, says that
            they need not be. Backward may call it with some of the rows, those whose solutions can
            differ.
            One that keeps data of its own for each row must say so by an attribute ``rowwise =
            False`` or get them as extra arguments of the call, which are forwarded to it, in
            backward too: then all rows are solved, or none (see repeat_arguments). It maximises,
            unless it has an attribute ``sense`` or, failing that, the layer's sense says otherwise.
            All dimensions of theta but the first are the instance's, unless it has an attribute
            ``instance_dims`` or the layer is given one. It sees masked scores as -inf (+inf if it
            minimises). An attribute ``fixed_size`` says whether all its solutions have the same
            number of ones: with True norms leave out the mean, with False, as for paths, the noise
            is centred.
        difference: "central", "forward" or "straight_through"; "thresholds" for that target.
    The other arguments are those of ``AIMLE``.
    """

    # None unless the target is adaptive: Any spares the users of adaptive ones the question.
    _kept: tuple[bool, str | None, str, Sharing | None]
    alpha: Tensor | Any
    gbar: Tensor | Any
    updates: Tensor | Any
    reach: Tensor | None
    layer_stats: Tensor
    table: Tensor | None

    def __init__(
        self,
        solver: AnySolver,
        *,
        difference: Literal["central", "forward", "straight_through", "thresholds"],
        target: Target | ThresholdTarget,
        **settings: Unpack[StepSettings],
    ) -> None:
        super().__init__(solver, settings)
        owner = type(self).__name__
        self.sense = resolve_sense(owner, solver, settings["sense"])
        temperature = one_temperature(owner, settings)
        if settings["target_noise_temperature"] is not None:
            _check_temperature(
                owner, "target_noise_temperature", settings["target_noise_temperature"]
            )
        self._noise = noise_for(solver, target, settings["noise"])
        self._noise_mean = subtracted_mean(solver, target, self._noise)
        self.theta_noise_temperature = temperature_for(solver, target, temperature)
        self._target_noise_temperature = settings["target_noise_temperature"]
        check_group(owner, settings["process_group"])
        self._sharing = Sharing(settings["process_group"])
        self.fractional = settings["fractional"]
        self.repeat_arguments = settings["repeat_arguments"]
        dims = settings["instance_dims"]
        self.instance_dims = checked_dims(
            owner, solver, dims, self.fractional, self.repeat_arguments
        )
        self.target = target
        self.difference = difference
        for name, value in self._initial_buffers().items():
            self.register_buffer(name, value, persistent=name not in ("layer_stats", "table"))

    @property
    def noise(self) -> Noise | None:
        """The distribution that perturbs theta; a layer keeps the one it was made with."""
        return self._noise

    @property
    def target(self) -> Target | ThresholdTarget:
        """How far backward steps. Another one of its kind may take its place at any time, as in
        ``layer.target = aimle.FixedTarget(lambda_)``; the adaptive state stays."""
        return self._target

    @target.setter
    def target(self, target: Target | ThresholdTarget) -> None:
        owner, before = type(self).__name__, getattr(self, "_target", target)
        if type(target) is not type(before):
            raise TypeError(
                f"[aimle.{owner}] expected target to be another {type(before).__name__} but got "
                f"{target!r}: make a new layer"
            )
        if getattr(target, "momentum", 0) and not getattr(before, "momentum", 0):
            raise ValueError(
                f"[aimle.{owner}] expected a target without momentum, as before, but got {target!r}"
                ": make a new layer"
            )
        if (getattr(target, "target_norm", 0) is None) != (
            getattr(before, "target_norm", 0) is None
        ):
            raise ValueError(
                f"[aimle.{owner}] expected a target whose target_norm is None where it was None, "
                f"and a number where it was one, but got {target!r}: make a new layer"
            )
        if self.noise is None and isinstance(target, AdaptiveTarget) and target.scale == "noise":
            raise ValueError(f"[aimle.{owner}] scale='noise' needs a noise but noise is None")
        self._target = target
        self._target_text = target_text(target)

    @property
    def temperature(self) -> float:
        """Scale of the noise in forward; also called ``theta_noise_temperature``."""
        return self.theta_noise_temperature

    @temperature.setter
    def temperature(self, temperature: float) -> None:
        self.theta_noise_temperature = temperature

    @property
    def target_noise_temperature(self) -> float:
        """Scale of the noise in backward: that of forward, unless one was given."""
        own = self._target_noise_temperature
        return self.theta_noise_temperature if own is None else float(own)

    @target_noise_temperature.setter
    def target_noise_temperature(self, temperature: float | None) -> None:
        self._target_noise_temperature = temperature

    def forward(
        self,
        theta: Tensor,
        *args,
        mask: Tensor | None = None,
        k: Tensor | int | None = None,
        data: Tensor | None = None,
        key: Tensor | None = None,
        **kwargs,
    ) -> Tensor:
        """Solve theta [*batch, *instance] under noise; see the module for the shape of the result.

        Args:
            mask: bool, broadcastable to theta; entries that are False are never chosen, take no
                part in norms and counts, and get no gradient.
            k: with TopK, an int or int64 broadcastable to *batch, in place of the solver's k.
            data: with solvers that take it, int64 [length] or broadcastable to [*batch, length],
                in place of the solver's own.
            key: int64 [2], on theta's device or on the CPU; the same key gives the same noise.
                Drawn from PyTorch's generator if not given. One on the CPU is read at the call: a
                captured graph repeats it in every replay.
        """
        compiling = is_compiling()
        check_theta(type(self).__name__, theta)
        if not compiling and torch._C._are_functorch_transforms_active():
            _refuse_transforms(type(self).__name__, self.solver)
        if mask is not None:
            check_tensor(type(self).__name__, "mask", mask)
        if in_onnx_export():
            more = kwargs if data is None else {**kwargs, "data": data}
            return onnx_solution(self, theta, mask, k, args, more)
        draws, solver, settings, sharing = self._kept
        deferred = sharing is not None and self._defers(sharing)
        if key is None:
            key = self._draw_key(theta) if draws else blank_key(theta)
        else:
            check_tensor(type(self).__name__, "key", key)
            if key.is_cpu and compiling:
                key = key.to(theta.device)  # graphs of torch.compile want all on one device
        if solver is None:
            if k is not None:
                raise TypeError(
                    f"[aimle.{type(self).__name__}] k is for aimle.TopK: give a callable solver "
                    "its own arguments by another name"
                )
            if data is not None:
                kwargs["data"] = data  # an argument of the callable's own
            dims = instance_dims_of(self.solver, theta, self.instance_dims)
            minimises = getattr(self.solver, "sense", self.sense) == "min"
            fixed_size = getattr(self.solver, "fixed_size", False)
            about = CallableSolver(bool(minimises), dims, bool(fixed_size))
            return staged_map(self, theta, key, mask, about, settings, deferred, args, kwargs)
        if args or kwargs:
            raise TypeError(
                f"[aimle.{type(self).__name__}] {type(self.solver).__name__} takes no extra "
                f"arguments; only a callable solver does, but got {_listed(args, kwargs)}"
            )
        row_data, native = None, cast(Solver, self.solver)
        if k is not None or data is not None or native.takes_data:
            solver, row_data = native.row_arguments(type(self).__name__, theta, k, data)
        return _perturbed_map(
            theta,
            key,
            mask,
            row_data,
            self._buffers["table"],
            *self._state(deferred),
            f"solver={solver} {settings}",
            *self._temperatures(),
        )

    def stats(self) -> dict[str, Tensor]:
        """What the last backward pass with a gradient saw, as tensors, without a host sync.

        alpha, gbar, updates: the adaptive state now (adaptive targets only).
        lambda_mean, lambda_min, lambda_max: the step sizes over the examples that had a gradient.
        count: mean number of entries in which the two solutions differ.
        zero_share: share of zeros in the gradient of theta.
        changed_share: share of samples whose solution changed.
        clipped_share: of GridPath, share of the costs that were below zero, and taken as zero, in
            the solves of backward: noise and step included.
        idle_updates: updates in a row in which every step size was zero; 100 are too many.
        updates_at_bound: updates in a row after which alpha was at a bound; 1,000 are too many.
        NaN before the first such pass. A straight-through layer has none of these. Where several
        processes share the state, alpha, gbar, updates and the last two are those of all of them,
        the others those of this process.
        """
        state = {name: getattr(self, name) for name in ("alpha", "gbar", "updates")}
        result = {name: value.clone() for name, value in state.items() if value is not None}
        seen = dict(zip(_ALL_STATS, self.layer_stats.clone().unbind(), strict=True))
        shown = [*_STATS, *(_WATCH if self.alpha is not None else ())]
        if getattr(self.solver, "has_costs", False):
            shown.append("clipped_share")
        result.update((name, seen[name]) for name in shown)
        return result

    def extra_repr(self) -> str:
        parts = [
            f"{self.solver}",
            f"noise={self.noise}",
            f"nb_samples={self.nb_samples}",
            f"difference={self.difference!r}",
            f"target={self.target}",
            f"sense={self.sense!r}",
            f"output={self.output!r}",
        ]
        if self.noise is not None:
            parts.append(f"temperature={self.theta_noise_temperature:g}")
            if self.target_noise_temperature != self.theta_noise_temperature:
                parts.append(f"target_noise_temperature={self.target_noise_temperature:g}")
        if self.noise_in_eval:
            parts.append("noise_in_eval=True")
        return ", ".join(parts)

    def _initial_buffers(self) -> dict[str, Tensor | None]:
        buffers: dict[str, Tensor | None] = dict.fromkeys(_STATE)
        if isinstance(self.target, AdaptiveTarget):
            buffers["alpha"] = torch.tensor(self.target.start, dtype=torch.float64)
            buffers["gbar"] = torch.tensor(self.target.initial_gbar, dtype=torch.float64)
            buffers["updates"] = torch.tensor(0, dtype=torch.int64)
            if self.target.target_norm is None:
                buffers["reach"] = torch.tensor(0.0, dtype=torch.float64)
            if self.target.momentum:
                buffers["velocity"] = torch.tensor(0.0, dtype=torch.float64)
        buffers["layer_stats"] = torch.full((len(_ALL_STATS),), math.nan, dtype=torch.float64)
        buffers["table"] = self.noise.table() if isinstance(self.noise, SumOfGamma) else None
        return buffers

    def _state(self, deferred: bool = False) -> list[Tensor | None]:
        """As the layer ops take it; `deferred`: backward leaves its counts to a reduction."""
        buffers = self._buffers  # a third of the time of attributes
        return [
            buffers["alpha"],
            buffers["gbar"],
            buffers["updates"],
            buffers["reach"] if buffers["velocity"] is None else buffers["velocity"],
            self._sharing.stats if deferred else buffers["layer_stats"],
        ]

    def _apply_counts(self, counts: Tensor) -> None:
        """The update that the counts of all processes ask for."""
        solver = "callable:sense=max,dims=1,fixed_size=0"  # no part of the update
        settings = f"solver={solver} {self._settings(True)}"
        _apply_counts(counts, *self._state(True), settings, *self._temperatures())

    def _setting_changed(self, name: str) -> None:
        """Prepares the text of the settings, which is the same for all calls until the next change.

        Temperatures are no part of it: they may change at every step, and in compiled code.
        """
        if name.endswith("temperature"):
            return
        draws = self.noisy and self._noise is not None
        native = self.solver.text if isinstance(self.solver, Solver) else None
        sharing = self._prepare_sharing(name)
        self.__dict__["_kept"] = (draws, native, self._settings(self.noisy), sharing)

    def _temperatures(self) -> tuple[float, float]:
        return self.theta_noise_temperature, self.target_noise_temperature

    def _settings(self, noisy: bool) -> str:
        """The settings of the layer ops but solver and temperatures (layer_settings.h)."""
        noise = self.noise.name if noisy and self.noise is not None else "none"
        stddev = 0.0 if self.noise is None else self.noise.stddev
        return (
            f"noise={noise} sense={self.sense} output={self.output} difference={self.difference} "
            f"samples={self.nb_samples if noisy else 1} adapt={int(self.training)} "
            f"check={CHECK_DEFAULT} stddev={stddev!r} noise_mean={self._noise_mean!r} "
            f"{self._target_text}"
        )

    def _draw_key(self, theta: Tensor) -> Tensor:
        if (
            self.generator is not None
            and not is_compiling()
            and torch._C._current_graph_task_id() != -1  # inside a backward pass
        ):
            raise RuntimeError(
                f"[aimle.{type(self).__name__}] a generator cannot be replayed by activation "
                "checkpointing: draw a key outside (aimle.draw_key) and pass it as key"
            )
        return draw_layer_key(theta, self.generator)

    def _load_from_state_dict(
        self, state_dict, prefix, metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """As ``usable_state`` says."""
        state_dict = usable_state(self, state_dict, prefix, strict, error_msgs)
        if self._sharing.stats is not None:
            self._waiting().zero_()  # they were counted for another state
        super()._load_from_state_dict(
            state_dict, prefix, metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def _apply(self, fn, recurse=True):
        """Moves the state with the module, but keeps it in float64 and int64; leaving the meta
        device (``to_empty``), the layer begins anew."""
        before = {name: self._buffers[name] for name in (*_STATE, "table")}
        super()._apply(fn, recurse)
        for name, value in before.items():
            moved = self._buffers[name]
            if value is None or moved is None or moved is value:
                continue
            lost = value.is_meta and not moved.is_meta
            kept = self._initial_buffers()[name] if lost else value
            self._buffers[name] = None if kept is None else kept.to(moved.device)
        self._follow_stats(before["layer_stats"])
        return self
