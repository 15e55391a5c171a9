"""Settings that the layers share: types and defaults. ``aimle.AIMLE`` documents their meanings.

A constructor takes these settings as ``**settings: Unpack[...]``, which type checkers understand;
``SettingsModule`` lists them in its signature and fills in the defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypedDict

import torch
from torch import Generator, Tensor

from aimle.noise import Noise
from aimle.settings.checks import check_bool, check_choice, check_generator_type, check_int
from aimle.settings.names import SettingsModule
from aimle.solvers import Sense, Solver, check_solver
from aimle.state.sharing import GroupSetting
from aimle.targets import Rule, Scale, Scope, Target

Output = Literal["samples", "flat", "mean"]
AnySolver = Solver | Callable[..., Tensor]


class SampleSettings(TypedDict, total=False):
    """Settings of everything that draws samples."""

    nb_samples: int
    output: Output
    noise_in_eval: bool
    generator: Generator | None


class CallableSettings(TypedDict, total=False):
    """Settings that describe callable solvers."""

    instance_dims: int | None
    fractional: bool | None
    repeat_arguments: bool


class NoiseSettings(SampleSettings, CallableSettings, total=False):
    """Settings of layers that perturb theta."""

    noise: Noise | str | None
    temperature: float | None
    theta_noise_temperature: float | None
    sense: Sense | None


class StepSettings(NoiseSettings, total=False):
    """Settings of layers that solve again in backward."""

    target_noise_temperature: float | None
    process_group: GroupSetting


class TargetSettings(TypedDict, total=False):
    """A target, or the settings of an AdaptiveTarget one by one."""

    target: Target | None
    initial_alpha: float | None
    step: float | None
    target_norm: float | None
    decay: float | None
    scope: Scope | None
    scale: Scale | None
    rule: Rule | None
    factor: float | None
    alpha_range: tuple[float, float] | None
    momentum: float | None
    initial_gbar: float | None


class AdaptiveSettings(StepSettings, TargetSettings, total=False):
    """Settings of layers with an adaptive step."""


#: All other settings default to None.
DEFAULTS: StepSettings = {
    "nb_samples": 1,
    "output": "samples",
    "noise_in_eval": False,
    "noise": "auto",
    "process_group": "auto",
    "repeat_arguments": False,
}


class SolverModule(SettingsModule):
    """A solver and other settings; a base class."""

    def _refuse_assignment(self, name: str, value: object) -> None:
        super()._refuse_assignment(name, value)
        if name == "solver":
            check_solver(self._owner, value)


class SamplingModule(SolverModule):
    """A solver and the settings for drawing samples of its solutions; a base class."""

    _defaults = DEFAULTS

    def __init__(self, solver: AnySolver, settings: SampleSettings) -> None:
        super().__init__()
        owner = self._owner
        check_solver(owner, solver)
        nb_samples = check_int(owner, "nb_samples", settings["nb_samples"], 1)
        check_choice(owner, "output", settings["output"], ("samples", "flat", "mean"))
        check_generator_type(owner, settings["generator"])
        self.solver = solver
        self.nb_samples = nb_samples
        self.output = settings["output"]
        self.noise_in_eval = check_bool(owner, "noise_in_eval", settings["noise_in_eval"])
        self.generator = settings["generator"]

    def _apply(self, fn, recurse=True):
        """Moves the solver's data with the module, so that no call has to wait for the copy."""
        super()._apply(fn, recurse)
        if isinstance(self.solver, Solver) and self.solver.data is not None:
            self.solver.data_on(fn(torch.empty(0)).device)
        return self

    @property
    def noisy(self) -> bool:
        """Whether a call draws samples in the current mode."""
        return self.training or self.noise_in_eval
