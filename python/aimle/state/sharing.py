"""Adaptive layers in several processes: one state, updated from the counts of all processes.

In a single process a backward pass updates the state immediately. If the batch is spread over
processes, it adds its counts to three pending numbers instead, and the next training step begins
with one all-reduce for all layers, after which every process makes the same update:

    under DDP     before DDP's forward, in its process group
    otherwise     when a layer is called for the first time since the last reduction

Backward therefore never waits, and the result does not depend on which process had a gradient. Only
calls in training mode with gradients enabled, outside of a backward pass, communicate.

It is safe to use DDP's own group: at that point every process has issued the gradients of the
previous step, and none has begun the next one.

`reduction.py` communicates. It is imported when a layer first has a group, because it needs
torch._dynamo, which takes as long to import as the rest of torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.compiler import is_compiling
from torch.nn.modules.module import register_module_module_registration_hook
from torch.nn.parallel import DistributedDataParallel

from aimle.settings.checks import check_type

if TYPE_CHECKING or dist.is_available():
    from torch.distributed import ProcessGroup
else:

    class ProcessGroup:
        """Used if PyTorch was built without distributed training."""


GroupSetting = ProcessGroup | Literal["auto"] | None

# In memory order, after the stats (aimle/estimate/stats.h).
WAITING = 3


class Sharing:
    """The processes with which a layer shares its state, and the pending counts.

    A copy keeps the setting, and a pickle stores "auto" instead of a group; neither keeps
    counts."""

    def __init__(self, given: GroupSetting) -> None:
        self.given = given
        self.group = given if isinstance(given, ProcessGroup) else None
        self.by_ddp = False  # reduced before DDP's forward
        self.paused = False  # in DDP's join()
        self.called = False  # in a training step, without DDP
        self.stats: Tensor | None = None  # the layer's stats followed by the counts
        self.before_call: Callable[[SharedState], None] | None = None  # set once there is a group

    def __deepcopy__(self, memo: dict) -> Sharing:
        return Sharing(self.given)

    def __reduce__(self) -> tuple:
        return Sharing, (None if self.given is None else "auto",)


def check_group(owner: str, given: object) -> None:
    """Raises TypeError unless it is a valid ``process_group``."""
    if given is None or isinstance(given, ProcessGroup):
        return
    if not (isinstance(given, str) and given == "auto"):
        raise TypeError(
            f"[aimle.{owner}] expected process_group to be 'auto', None or a "
            f"torch.distributed.ProcessGroup but got {given!r}; in a process outside of the group "
            "give None"
        )


def in_backward() -> bool:
    """Whether a backward pass is running, for example to recompute an activation checkpoint."""
    return torch._C._current_graph_task_id() != -1


class SharedState(nn.Module):
    """Mixin for layers that share their adaptive state with other processes."""

    _sharing: Sharing

    @property
    def process_group(self) -> GroupSetting:
        """The processes that update the state together, as given."""
        return self._sharing.given

    def _prepare_sharing(self, changed: str) -> Sharing | None:
        """What a call needs, after `changed` was assigned; None if this process is alone."""
        sharing = self._sharing
        if self._buffers["alpha"] is None:
            return None
        # FSDP sets this on every module of a model.
        if changed == "_is_fsdp_managed_module" and sharing.given == "auto":
            sharing.group = _whole_world()
        if sharing.group is None:
            return None
        if sharing.before_call is None:
            from aimle.state.reduction import before_call

            sharing.before_call = before_call
        if sharing.stats is None:
            self._lay_out_counts(torch.zeros(WAITING, dtype=torch.float64))
        return sharing

    def _lay_out_counts(self, waiting: Tensor) -> None:
        """Puts stats and counts into one tensor, not a buffer, because DDP broadcasts those."""
        stats = self._buffers["layer_stats"]
        assert stats is not None
        self._sharing.stats = torch.cat([stats, waiting.to(stats.device)])
        self._buffers["layer_stats"] = self._sharing.stats[:-WAITING]

    def _share_under(self, ddp: DistributedDataParallel) -> None:
        sharing, group = self._sharing, ddp.process_group
        if isinstance(sharing.given, ProcessGroup):
            group = sharing.given
        elif group.size() == 1:
            return
        sharing.paused = ddp._join_config.enable
        if sharing.group is not group or not sharing.by_ddp:
            sharing.group, sharing.by_ddp = group, True
            self._setting_changed("")

    def _defers(self, sharing: Sharing) -> bool:
        """Whether backward of this call leaves its counts to a reduction. Begins a step if this is
        the first call of one."""
        if sharing.by_ddp:
            # A call of ddp.module concerns only this process.
            inside = is_compiling() or DistributedDataParallel._active_ddp_module is not None
            return not sharing.paused and (inside or in_backward())
        if self.training and sharing.before_call is not None:
            sharing.before_call(self)
        return True

    def _waiting(self) -> Tensor:
        stats = self._sharing.stats
        assert stats is not None
        return stats[-WAITING:]

    def _follow_stats(self, before: Tensor | None) -> None:
        """Called after the layer was moved: moves the counts to the device of the stats."""
        stats = self._sharing.stats
        if stats is not None and self._buffers["layer_stats"] is not before:
            lost = stats.is_meta
            self._lay_out_counts(torch.zeros(WAITING).double() if lost else self._waiting())

    def _setting_changed(self, name: str) -> None:
        raise NotImplementedError

    def _apply_counts(self, counts: Tensor) -> None:
        raise NotImplementedError

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("_sharing", Sharing("auto"))  # pickled by an older version
        self._setting_changed("")


def _whole_world() -> ProcessGroup | None:
    """The group of all processes, if there are several."""
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return None
    return dist.group.WORLD


def sharing_layers(module: nn.Module) -> list[SharedState]:
    """The layers that have a state and did not opt out."""
    return [
        layer
        for layer in module.modules()
        if isinstance(layer, SharedState)
        and layer._buffers["alpha"] is not None
        and layer._sharing.given is not None
    ]


def _watch_ddp(module: nn.Module, name: str, submodule: nn.Module | None) -> None:
    """Called whenever a module becomes part of another."""
    if name == "module" and isinstance(module, DistributedDataParallel) and submodule is not None:
        layers = sharing_layers(submodule)
        if layers:
            from aimle.state.reduction import before_ddp_forward, layers_of

            layers_of[module] = layers
            module.register_forward_pre_hook(before_ddp_forward)


if dist.is_available():
    register_module_module_registration_hook(_watch_ddp)


def keep_own_state(module: nn.Module) -> None:
    """Makes the layers in `module` update their state alone, as with ``process_group=None``."""
    for layer in module.modules():
        if isinstance(layer, SharedState):
            layer._sharing = Sharing(None)


def reduce_state(module: nn.Module) -> None:
    """Updates the adaptive state of all layers in `module` from the counts of all processes since
    the last training step began.

    Every process has to call it. Training does this automatically at the next step; call it before
    saving a checkpoint to include the last step. Does nothing for layers of a single process.
    """
    check_type("reduce_state", module, nn.Module, "module to be a torch.nn.Module")
    from aimle.state.reduction import reduce

    reduce(sharing_layers(module))
