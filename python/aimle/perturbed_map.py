"""The base class of all layers: a solver inside a network, with a gradient.

    theta -> noise -> perturb -> solver -> z -> [your loss] -> theta +- lambda d -> solver again
                                                                    -> difference -> gradient

``layer(theta)`` takes theta [*batch, *instance], one instance per example, and returns z:

    output="samples"   [*batch, S, *instance]   the gradient is the sum over samples, so that
                                                ``loss.mean()`` gives the paper's mean
    output="flat"      [B S, *instance]         the same, example-major
    output="mean"      [*batch, *instance]      the mean of the samples

In training mode z is sampled with noise. In eval mode it is the noise-free solution (S = 1), unless
``noise_in_eval`` is set, and the adaptive state is frozen.
"""

from __future__ import annotations

import math
from typing import Any, Literal, cast

import torch
from torch import Tensor
from torch.compiler import is_compiling
from typing_extensions import Unpack

from aimle.callable_solver.staged import CallableSolver, staged_map
from aimle.functional import blank_key, check_generator, draw_layer_key, process_rank
from aimle.noise import Noise, SumOfGamma
from aimle.onnx.solution import in_onnx_export, onnx_solution
from aimle.settings.checks import (
    check_choice,
    check_not_negative,
    check_positive,
    check_tensor,
    check_theta,
    check_type,
    instance_dims_of,
)
from aimle.settings.defaults import largest_alpha_for, noise_for, subtracted_mean, temperature_for
from aimle.settings.names import did_you_mean
from aimle.settings.shared import AnySolver, NoiseSettings, SamplingModule, StepSettings
from aimle.solvers import CHECK_DEFAULT, Data, K, Key, Mask, Solver, checked_dims, resolve_sense
from aimle.state.saved import usable_state
from aimle.state.sharing import SharedState, Sharing, check_group
from aimle.targets import AdaptiveTarget, FixedTarget, Target, ThresholdTarget, target_text

_perturbed_map = torch.ops.aimle.perturbed_map.default
_apply_counts = torch.ops.aimle.apply_counts.default

_DIFFERENCES = ("central", "forward", "straight_through", "thresholds")
_STATS = ("lambda_mean", "lambda_min", "lambda_max", "count", "zero_share", "changed_share")
_THRESHOLD_STATS = ("capped_share", "capped_mass")
_WATCH = ("idle_updates", "updates_at_bound")
# In memory order (stats.h).
_OF_CLIPPING = ("clipped_passes", "warned_of_clipping")
_ALL_STATS = (*_STATS, *_THRESHOLD_STATS, "clipped_share", *_WATCH, "warned", *_OF_CLIPPING)
_STATE = ("alpha", "gbar", "updates", "reach", "velocity", "sizes", "layer_stats")


def one_temperature(owner: str, settings: NoiseSettings, *, positive: bool = False) -> float | None:
    """The scale of the noise, given under either of its two names; None if neither was given."""
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
    (check_positive if positive else check_not_negative)(owner, name, value)
    return float(value)


def _listed(args: tuple, kwargs: dict) -> str:
    return ", ".join([*(type(each).__name__ for each in args), *(f"{name}=" for name in kwargs)])


def _refuse_transforms(owner: str, solver: object) -> None:
    """Raises RuntimeError inside torch.func transforms; native solvers support only vmap."""
    transform = torch._C._functorch
    if transform.peek_interpreter_stack().key() != transform.TransformType.Vmap:
        raise RuntimeError(
            f"[aimle.{owner}] torch.func cannot differentiate this layer: use backward() or "
            "torch.autograd.grad instead of torch.func's grad, vjp, jacrev or jvp"
        )
    if not isinstance(solver, Solver):
        raise RuntimeError(
            f"[aimle.{owner}] torch.func.vmap cannot map a callable solver: pass all rows as one "
            "batch instead"
        )


class PerturbedMap(SamplingModule, SharedState):
    """Perturb-and-MAP with an estimated gradient: the base class of all layers.

    Args:
        solver: a native solver, or any callable that maps scores [B S, *instance] (example-major)
            to solutions of the same shape and on the same device (see below).
        difference: "central", "forward" or "straight_through"; "thresholds" for that target.
    The other arguments are those of ``AIMLE``.

    A callable solver receives float32 scores if theta is bfloat16 or float16. It may return NumPy
    arrays, bools or other precisions, which are converted. Masked scores are -inf (+inf if it
    minimises). By default it maximises, every dimension of theta except the first belongs to the
    instance, and its solutions must be whole numbers. These attributes of the callable change that:

        sense          "max" or "min"; takes precedence over the layer's ``sense``. "min": theta
                       holds costs, and AIMLE takes the forward difference
        instance_dims  number of trailing dimensions of theta per instance (also a layer argument)
        fractional     True: solutions need not be whole numbers (also a layer argument)
        fixed_size     whether all solutions have the same number of ones. True: norms leave out the
                       mean. False, as for paths: the noise is centred. Without it, the default
                       step finds out from the solutions it sees (buffer ``sizes``), and the noise
                       is not centred. None: it finds out, and the noise is centred.
        rowwise        False: the callable keeps data per row, so backward always solves all rows

    Backward may call it with only those rows whose solutions can differ. Extra arguments of the
    call are forwarded to it, in backward too; then either all rows are solved or none (but see
    ``repeat_arguments``).
    """

    # None unless the target is adaptive. Any saves users of adaptive targets a None check.
    _kept: tuple[bool, str | None, str, Sharing | None]
    alpha: Tensor | Any
    gbar: Tensor | Any
    updates: Tensor | Any
    reach: Tensor | None
    sizes: Tensor | None
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
        owner = self._owner
        check_choice(owner, "difference", difference, _DIFFERENCES)
        expected = "target to be an aimle.AdaptiveTarget or aimle.FixedTarget"
        check_type(owner, target, AdaptiveTarget | FixedTarget | ThresholdTarget, expected)
        self.sense = resolve_sense(owner, solver, settings["sense"])
        temperature = one_temperature(owner, settings)
        if settings["target_noise_temperature"] is not None:
            check_not_negative(
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
        self.difference = difference
        self.target = target
        for name, value in self._initial_buffers().items():
            self.register_buffer(name, value, persistent=name not in ("layer_stats", "table"))

    @property
    def noise(self) -> Noise | None:
        """The distribution that perturbs theta; it cannot be changed after construction."""
        return self._noise

    @property
    def target(self) -> Target | ThresholdTarget:
        """The step of the backward pass. It may be replaced at any time by a target of the same
        kind, as in ``layer.target = aimle.FixedTarget(lambda_)``; the adaptive state is kept."""
        return self._target

    @target.setter
    def target(self, target: Target | ThresholdTarget) -> None:
        owner, before = self._owner, getattr(self, "_target", target)
        if type(target) is not type(before):
            raise TypeError(
                f"[aimle.{owner}] expected target to be another {type(before).__name__} but got "
                f"{target!r}: make a new layer"
            )
        expected = ""
        measures, measured = (getattr(each, "target_norm", 0) is None for each in (target, before))
        if getattr(target, "momentum", 0) and not getattr(before, "momentum", 0):
            expected = "without momentum, as before,"
        elif measures != measured:
            expected = "whose target_norm is None where it was None, and a number where it was one,"
        if expected:
            raise ValueError(
                f"[aimle.{owner}] expected a target {expected} but got {target!r}: make a new layer"
            )
        if self.noise is None and isinstance(target, AdaptiveTarget) and target.scale == "noise":
            raise ValueError(f"[aimle.{owner}] scale='noise' needs a noise but noise is None")
        self._target = target
        self._target_text = target_text(self._bounded_target())

    def _bounded_target(self) -> Target | ThresholdTarget:
        """The target with the bounds of alpha that suit the structure."""
        if not isinstance(self._target, AdaptiveTarget):
            return self._target
        return self._target.bounded(largest_alpha_for(self.solver, self.sense, self.difference))

    @property
    def temperature(self) -> float:
        """Scale of the noise in forward; also called ``theta_noise_temperature``."""
        return self.theta_noise_temperature

    @temperature.setter
    def temperature(self, temperature: float) -> None:
        self.theta_noise_temperature = temperature

    @property
    def target_noise_temperature(self) -> float:
        """Scale of the noise in backward; the forward scale unless one was given."""
        own = self._target_noise_temperature
        return self.theta_noise_temperature if own is None else float(own)

    @target_noise_temperature.setter
    def target_noise_temperature(self, temperature: float | None) -> None:
        self._target_noise_temperature = temperature

    def forward(
        self,
        theta: Tensor,
        *args,
        mask: Mask = None,
        k: K = None,
        data: Data = None,
        key: Key = None,
        **kwargs,
    ) -> Tensor:
        """Solve theta [*batch, *instance] under noise; the module documents the output shapes.

        Args:
            mask: bool, broadcastable to theta. Entries that are False are never chosen, are left
                out of norms and counts, and get no gradient.
            k: for TopK, an int or int64 broadcastable to *batch; overrides the solver's k.
            data: for solvers that take it, int64 [length] or broadcastable to [*batch, length];
                overrides the solver's own data.
            key: int64 [2], on theta's device or on the CPU; the same key gives the same noise.
                Drawn from PyTorch's generator if not given. A key on the CPU is read at the call,
                so every replay of a captured graph repeats it. For a part of a batch, [3] with the
                number of the part's first instance: it then has the noise of the whole batch.
        """
        compiling = is_compiling()
        check_theta(self._owner, theta)
        transforming = not compiling and torch._C._are_functorch_transforms_active()
        if transforming:
            _refuse_transforms(self._owner, self.solver)
        if mask is not None:
            check_tensor(self._owner, "mask", mask)
        if in_onnx_export():
            more = kwargs if data is None else {**kwargs, "data": data}
            return onnx_solution(self, theta, mask, k, args, more)
        draws, solver, settings, sharing = self._kept
        deferred = sharing is not None and self._defers(sharing)
        if key is None:
            if not draws:
                key = blank_key(theta)
            elif solver is None or compiling or transforming or not self._draws_as_its_op():
                check_generator(self._owner, self.generator)
                key = draw_layer_key(theta, self.generator)
        else:
            check_tensor(self._owner, "key", key)
            if key.is_cpu and compiling:
                key = key.to(theta.device)  # torch.compile's graphs need all tensors on one device
        if solver is None:
            if k is not None:
                raise TypeError(
                    f"[aimle.{self._owner}] k is reserved for aimle.TopK: give a callable "
                    "solver its own arguments under another name"
                )
            if data is not None:
                kwargs["data"] = data  # an argument of the callable
            dims = instance_dims_of(self.solver, theta, self.instance_dims)
            minimises = getattr(self.solver, "sense", self.sense) == "min"
            fixed_size = getattr(self.solver, "fixed_size", False)
            about = CallableSolver(bool(minimises), dims, bool(fixed_size))
            assert key is not None  # only the op of a native solver draws it
            return staged_map(self, theta, key, mask, about, settings, deferred, args, kwargs)
        if args or kwargs:
            hint = ": pass mask, k, data and key by name"
            if not args:
                hint = did_you_mean(next(iter(kwargs)), ["mask", "k", "data", "key"])
            raise TypeError(
                f"[aimle.{self._owner}] {type(self.solver).__name__} takes no extra "
                f"arguments; only a callable solver does, but got {_listed(args, kwargs)}{hint}"
            )
        row_data, native = None, cast(Solver, self.solver)
        if k is not None or data is not None or native.takes_data:
            solver, row_data = native.row_arguments(self._owner, theta, k, data)
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
        """Statistics of the last backward pass with a gradient, as tensors, without a host sync.

        alpha, gbar, updates: the current adaptive state (adaptive targets only).
        lambda_mean, lambda_min, lambda_max: the step sizes over the examples that had a gradient.
        count: mean number of entries in which the two solutions differ.
        zero_share: share of zeros in the gradient of theta.
        changed_share: share of samples whose solution changed.
        clipped_share: for GridPath and GraphPath, share of the costs that were below zero in the
            solves of backward (noise and step included) and were clipped to zero. A layer on the
            CPU warns if it is above 0.95 in 300 consecutive passes.
        idle_updates: consecutive updates in which every step size was zero; 100 or more indicate a
            problem.
        updates_at_bound: consecutive updates after which alpha was at a bound; 1,000 or more
            indicate a problem.

        All are NaN before the first such pass. A straight-through layer has none of them. Where
        several processes share the state, alpha, gbar, updates, idle_updates and updates_at_bound
        cover all processes, and the other values cover this process only.
        """
        state = {name: getattr(self, name) for name in ("alpha", "gbar", "updates")}
        result = {name: value.clone() for name, value in state.items() if value is not None}
        seen = dict(zip(_ALL_STATS, self.layer_stats.clone().unbind(), strict=True))
        shown = [*_STATS, *(_WATCH if self.alpha is not None else ())]
        if isinstance(self.solver, Solver) and self.solver.has_costs:
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
        target = self._bounded_target()
        if isinstance(target, AdaptiveTarget):
            buffers["alpha"] = torch.tensor(target.start, dtype=torch.float64)
            buffers["gbar"] = torch.tensor(target.initial_gbar, dtype=torch.float64)
            buffers["updates"] = torch.tensor(0, dtype=torch.int64)
            if target.target_norm is None:
                buffers["reach"] = torch.tensor(0.0, dtype=torch.float64)
            if target.momentum:
                buffers["velocity"] = torch.tensor(0.0, dtype=torch.float64)
            if target.scale != "theta" and getattr(self.solver, "fixed_size", None) is None:
                buffers["sizes"] = torch.full((2,), math.inf, dtype=torch.float64)
        buffers["layer_stats"] = torch.full((len(_ALL_STATS),), math.nan, dtype=torch.float64)
        buffers["table"] = self.noise.table() if isinstance(self.noise, SumOfGamma) else None
        return buffers

    def _state(self, deferred: bool = False) -> list[Tensor | None]:
        """The state as the layer ops take it; `deferred`: counts are reduced after backward."""
        buffers = self._buffers  # takes a third of the time of attribute access
        return [
            buffers["alpha"],
            buffers["gbar"],
            buffers["updates"],
            buffers["reach"] if buffers["velocity"] is None else buffers["velocity"],
            self._sharing.stats if deferred else buffers["layer_stats"],
        ]

    def _apply_counts(self, counts: Tensor) -> None:
        """Updates the state from the counts of all processes."""
        solver = "callable:sense=max,dims=1,fixed_size=0"  # not used by the update
        settings = f"solver={solver} {self._settings(True)}"
        _apply_counts(counts, *self._state(True), settings, *self._temperatures())

    def _setting_changed(self, name: str) -> None:
        """Prepares the text of the settings, which is the same for all calls until the next change.

        Temperatures are not part of it: they may change at every step, and in compiled code.
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
        """The settings of the layer ops, without solver and temperatures (layer_settings.h)."""
        noise = self.noise.name if noisy and self.noise is not None else "none"
        stddev = 0.0 if self.noise is None else self.noise.stddev
        return (
            f"noise={noise} sense={self.sense} output={self.output} difference={self.difference} "
            f"samples={self.nb_samples if noisy else 1} adapt={int(self.training)} "
            f"check={CHECK_DEFAULT} stddev={stddev!r} noise_mean={self._noise_mean!r} "
            f"{self._target_text}"
        )

    def _draws_as_its_op(self) -> bool:
        """Whether the op, called without a key, draws the same one; that takes less time."""
        return self.generator is None and process_rank() == 0

    def _load_from_state_dict(
        self, state_dict, prefix, metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """See ``usable_state``."""
        state_dict = usable_state(self, state_dict, prefix, strict, error_msgs)
        if self._sharing.stats is not None:
            self._waiting().zero_()  # these counts belong to another state
        super()._load_from_state_dict(
            state_dict, prefix, metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def _apply(self, fn, recurse=True):
        """Moves the state with the module but keeps it in float64 and int64. When leaving the meta
        device (``to_empty``), the state is reinitialised."""
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
