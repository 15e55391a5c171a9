"""Target distributions: how far backward steps along the incoming gradient.

    theta_R = alpha theta - lambda dy        theta_L = alpha theta + lambda dy  (central)

``TargetDistribution`` has lambda = beta. ``AdaptiveTargetDistribution`` has lambda = beta
||theta|| / ||dy||: its beta is the paper's alpha, while alpha, in both classes, is a constant
factor on theta. Classes derived from ``BaseTargetDistribution`` that define ``params`` and
``process`` work as well.
"""

from abc import ABC, abstractmethod
from typing import TypeGuard

import torch
from torch import Tensor

from aimle.settings.checks import check_not_negative
from aimle.targets import AdaptiveTarget, FixedTarget


class BaseTargetDistribution(ABC):
    """Base class for custom targets: define ``params`` and ``process``."""

    @abstractmethod
    def params(self, theta: Tensor, dy: Tensor | None, *, _is_minimization: bool = False) -> Tensor:
        """theta [N, *instance] after a step against dy, of the same shape (None: no step).

        Called with theta repeated S M times, and with -dy for theta_L.
        """

    @abstractmethod
    def process(self, theta: Tensor, dy: Tensor, gradient_3d: Tensor) -> Tensor:
        """The difference of solutions [B, S, *instance] (halved if central) as a gradient.

        theta [B, *instance] is not repeated; dy is [B S M, *instance]. Called once per backward.
        """


class TargetDistribution(BaseTargetDistribution):
    """A constant step.

    Args:
        alpha: factor on theta.
        beta: lambda, in units of the incoming dy.
        do_gradient_scaling: divide the difference by max(beta, eps).
        eps: lower bound of that divisor.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        beta: float = 1.0,
        do_gradient_scaling: bool = False,
        eps: float = 1e-7,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.do_gradient_scaling = do_gradient_scaling
        self.eps = eps

    @property
    def divisor(self) -> float:
        """The divisor of the difference."""
        return max(self.beta, self.eps) if self.do_gradient_scaling else 1.0

    def params(
        self,
        theta: Tensor,
        dy: Tensor | None,
        alpha: float | None = None,
        beta: float | None = None,
        _is_minimization: bool = False,
    ) -> Tensor:
        """alpha theta - beta dy, or plus if theta is a cost."""
        scaled = (self.alpha if alpha is None else alpha) * theta
        if dy is None:
            return scaled
        step = (self.beta if beta is None else beta) * dy
        return scaled + step if _is_minimization else scaled - step

    def process(self, theta: Tensor, dy: Tensor, gradient_3d: Tensor) -> Tensor:
        """gradient_3d / divisor."""
        return gradient_3d / self.divisor

    def settings(self, reference: bool) -> FixedTarget:
        """The equivalent target of the layers."""
        return FixedTarget(self.beta)

    def state(self, device: torch.device) -> list[None]:
        """The state that backward changes: none."""
        return [None] * 4


class AdaptiveTargetDistribution(BaseTargetDistribution):
    """A step that adapts so that on average target_norm entries of a solution change.

    beta and grad_norm change in every backward pass of every function that uses this target; they
    can be read, set, and saved with ``state_dict``. Reading beta waits for the device.

    Args:
        initial_alpha: factor on theta.
        initial_beta: where beta, the paper's alpha, starts; 0 in the paper.
        initial_grad_norm: where the moving average of the number of changes starts.
        beta_update_step: increment of beta; 1e-3 in the paper.
        beta_update_momentum: share of the previous increment that is added to the next.
        grad_norm_decay_rate: decay of the moving average.
        target_norm: the target number of changed entries.
    """

    def __init__(
        self,
        initial_alpha: float = 1.0,
        initial_beta: float = 1.0,
        initial_grad_norm: float = 1.0,
        beta_update_step: float = 0.0001,
        beta_update_momentum: float = 0.0,
        grad_norm_decay_rate: float = 0.9,
        target_norm: float = 1.0,
    ) -> None:
        for name, value in (
            ("initial_beta", initial_beta),
            ("initial_grad_norm", initial_grad_norm),
            ("beta_update_step", beta_update_step),
        ):
            check_not_negative("compat.AdaptiveTargetDistribution", name, value)
        self.alpha = initial_alpha
        self.beta_update_step = beta_update_step
        self.beta_update_momentum = beta_update_momentum
        self.grad_norm_decay_rate = grad_norm_decay_rate
        self.target_norm = target_norm
        self._state = {
            "beta": torch.tensor(float(initial_beta), dtype=torch.float64),
            "grad_norm": torch.tensor(float(initial_grad_norm), dtype=torch.float64),
            "updates": torch.tensor(0, dtype=torch.int64),
            "previous_beta_update": torch.tensor(0.0, dtype=torch.float64),
        }
        # Checks the values, with an error that names the argument.
        AdaptiveTarget.paper(initial_alpha=initial_beta, initial_gbar=initial_grad_norm)
        self.settings(reference=False)

    @property
    def beta(self) -> float:
        """The paper's alpha: lambda = beta ||theta|| / ||dy||."""
        return self._state["beta"].item()

    @beta.setter
    def beta(self, value: float) -> None:
        self._state["beta"].fill_(value)

    @property
    def grad_norm(self) -> Tensor:
        """The moving average of the number of changed entries of a sample, a float64 scalar."""
        return self._state["grad_norm"].clone()

    @grad_norm.setter
    def grad_norm(self, value: float | Tensor) -> None:
        self._state["grad_norm"].fill_(value)

    @property
    def previous_beta_update(self) -> float:
        """The last increment of beta."""
        return self._state["previous_beta_update"].item()

    @previous_beta_update.setter
    def previous_beta_update(self, value: float) -> None:
        self._state["previous_beta_update"].fill_(value)

    def state_dict(self) -> dict[str, Tensor]:
        """beta, grad_norm, updates, previous_beta_update: everything that backward changes."""
        return {name: value.clone() for name, value in self._state.items()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Restores a state from ``state_dict``."""
        if state.keys() != self._state.keys():
            raise ValueError(
                "[aimle.compat.AdaptiveTargetDistribution] expected a state with "
                f"{sorted(self._state)} but got {sorted(state)}"
            )
        for name, value in state.items():
            self._state[name].copy_(torch.as_tensor(value))

    def params(self, theta: Tensor, dy: Tensor | None, _is_minimization: bool = False) -> Tensor:
        """Not available: lambda is computed from all samples of an example, once per backward."""
        raise NotImplementedError(self._alone)

    def process(self, theta: Tensor, dy: Tensor, gradient_3d: Tensor) -> Tensor:
        """Not available, see ``params``."""
        raise NotImplementedError(self._alone)

    _alone = (
        "[aimle.compat.AdaptiveTargetDistribution] works inside aimle(...) and imle(...): lambda "
        "is computed once per backward, from all samples of an example, to step and to divide"
    )

    def settings(self, reference: bool) -> AdaptiveTarget:
        """The equivalent target of the layers."""
        make = AdaptiveTarget.reference if reference else AdaptiveTarget.paper
        return make(
            step=self.beta_update_step,
            target_norm=self.target_norm,
            decay=self.grad_norm_decay_rate,
            momentum=self.beta_update_momentum,
        )

    def state(self, device: torch.device) -> list[Tensor]:
        """The state that backward changes, in the order of the layer ops, on this device."""
        if self._state["beta"].device != device:
            self._state = {name: value.to(device) for name, value in self._state.items()}
        return list(self._state.values())


OurTarget = TargetDistribution | AdaptiveTargetDistribution


def has_our_rule(target: BaseTargetDistribution) -> TypeGuard[OurTarget]:
    """Whether params and process are those of one of the two classes above."""
    rule = (type(target).params, type(target).process)
    return rule in (
        (TargetDistribution.params, TargetDistribution.process),
        (AdaptiveTargetDistribution.params, AdaptiveTargetDistribution.process),
    )
